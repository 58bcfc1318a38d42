"""Descriptions of a person in a frame, as a witness could give them."""

from __future__ import annotations

from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.people.bodies import get_looks, is_rider, select_item
from roadaware.simulator.people.statures import get_age_group

_ITEM_NAMES = {
    "phone": "a phone",
    "screen": "a phone",
    "flag": "a flag",
    "sign": "a sign",
    "stone": "a stone",
    "flare": "a flare",
    "umbrella": "an umbrella",
    "stick": "a walking stick",
    "shopping": "a shopping bag",
    "club": "a club",
}
_BAG_NAMES = {"backpack": "a backpack", "handbag": "a handbag"}
_HAT_NAMES = {
    "cap": "a cap",
    "woolly": "a woolly hat",
    "brimmed": "a hat",
    "helmet": "a helmet",
    "visor": "a helmet",
}
_TOP_NAMES = {
    "shirt": "a shirt",
    "t-shirt": "a T-shirt",
    "hoodie": "a hoodie",
    "jacket": "a jacket",
    "coat": "a long coat",
    "dress": "a dress",
}


def describe_appearance(actor: Actor, frame: int) -> dict[str, str]:
    """Visible attributes of a person; keys that do not apply are left out.

    Args:
        actor: who.
        frame: of the scene.

    Returns:
        pose, age, top, and where they apply bottom, hat, bag, vest, holds and looks (left or right, from
        where the body points).
    """
    row = actor.at(frame)
    if row is None:
        return {}
    outfit = get_looks(actor).outfit
    told = {
        "pose": "ride" if is_rider(actor) else Pose(int(actor.pose[row])).name.lower(),
        "age": get_age_group(actor.model),
        "top": _TOP_NAMES[outfit.top],
    }
    if outfit.top != "dress":
        told["bottom"] = "a skirt" if outfit.bottom == "skirt" else outfit.bottom
    if outfit.hood or outfit.hat != "none":
        told["hat"] = "a hood" if outfit.hood else _HAT_NAMES[outfit.hat]
    if outfit.bag in _BAG_NAMES:
        told["bag"] = _BAG_NAMES[outfit.bag]
    if outfit.vest:
        told["vest"] = "a high-visibility vest"
    item = select_item(actor, row)
    if item:
        told["holds"] = _ITEM_NAMES[item]
    if abs(float(actor.gaze[row])) > 0.3:
        told["looks"] = "left" if actor.gaze[row] > 0 else "right"
    return told
