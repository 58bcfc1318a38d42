"""The words and forms of JAAD's files: vocabularies in code order, and how records are written."""

from __future__ import annotations

from roadaware.scenes.readers.records import Record

TRACK_LABEL = ("pedestrian", "ped", "people")
OCCLUSION = ("none", "part", "full")
CROSSING = ("not-crossing", "crossing", "irrelevant")
ROAD_TYPE = ("street", "parking_lot", "garage")

BOX_TAGS: dict[str, tuple[str, ...]] = {
    "action": ("standing", "walking"),
    "look": ("not-looking", "looking"),
    "cross": CROSSING,
    "hand_gesture": ("__undefined__", "greet", "yield", "rightofway", "other"),
    "reaction": ("__undefined__", "clear_path", "speed_up", "slow_down"),
    "nod": ("__undefined__", "nodding"),
}
TRAITS: dict[str, tuple[str, ...]] = {
    "age": ("child", "young", "adult", "senior"),
    "gender": ("n/a", "female", "male"),
    "intersection": ("no", "yes"),
    "designated": ("ND", "D"),
    "signalized": ("n/a", "NS", "S"),
    "traffic_direction": ("OW", "TW"),
    "motion_direction": ("n/a", "LAT", "LONG"),
}
TRAFFIC_LIGHT = ("n/a", "red", "green")
VEHICLE_ACTION = ("stopped", "moving_slow", "moving_fast", "decelerating", "accelerating")
APPEARANCE = (
    "baby",
    "backpack",
    "bag_elbow",
    "bag_hand",
    "bag_left_side",
    "bag_right_side",
    "bag_shoulder",
    "bicycle_motorcycle",
    "cap",
    "clothes_below_knee",
    "clothes_lower_dark",
    "clothes_lower_light",
    "clothes_upper_dark",
    "clothes_upper_light",
    "hood",
    "object",
    "phone",
    "pose_back",
    "pose_front",
    "pose_left",
    "pose_right",
    "stroller_cart",
    "sunglasses",
    "umbrella",
)

VOCABULARIES: dict[str, tuple[str, ...]] = {
    "track_label": TRACK_LABEL,
    "occlusion": OCCLUSION,
    "pedestrian_action": BOX_TAGS["action"],
    **{name: labels for name, labels in BOX_TAGS.items() if name != "action"},
    **TRAITS,
    "crossing": CROSSING,
    "road_type": ROAD_TYPE,
    "traffic_light": TRAFFIC_LIGHT,
    "vehicle_action": VEHICLE_ACTION,
}

BOX = Record(
    "box",
    "track",
    ("frame", "keyframe", "occluded", "outside", "xbr", "xtl", "ybr", "ytl"),
    (
        ("id", "old_id", "look", "reaction", "action", "cross", "hand_gesture", "occlusion", "nod"),
        ("id", "old_id", "occlusion"),
    ),
)
PEDESTRIAN = Record(
    "pedestrian",
    "ped_attributes",
    (
        "age",
        "crossing",
        "crossing_point",
        "decision_point",
        "designated",
        "gender",
        "group_size",
        "id",
        "intersection",
        "motion_direction",
        "num_lanes",
        "old_id",
        "signalized",
        "traffic_direction",
    ),
)
TRAFFIC = Record("frame", "traffic_scene", ("id", "ped_crossing", "ped_sign", "stop_sign", "traffic_light"))
VEHICLE = Record("frame", "vehicle_info", ("action", "id"))
APPEARANCE_BOX = Record("box", "track", tuple(sorted([*APPEARANCE, "frame"])))

SIDES: dict[str, tuple[Record, str]] = {
    "attributes": (PEDESTRIAN, "ped_attributes"),
    "traffic": (TRAFFIC, "traffic_scene"),
    "vehicle": (VEHICLE, "vehicle_info"),
    "appearance": (APPEARANCE_BOX, "pedestrian_appearance"),
}
