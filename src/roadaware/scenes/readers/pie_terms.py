"""The words and forms of PIE's files: vocabularies in the dataset's code order, how records are written."""

from __future__ import annotations

import re

from roadaware.scenes.readers.records import Record

PARTS = {
    "annotations": "_annt.xml",
    "annotations_attributes": "_attributes.xml",
    "annotations_vehicle": "_obd.xml",
}
SPLIT = {
    "set01": "train",
    "set02": "train",
    "set03": "test",
    "set04": "train",
    "set05": "val",
    "set06": "val",
}
TRACK_LABEL = ("pedestrian", "vehicle", "traffic_light", "sign", "crosswalk", "transit_station")
OCCLUSION = ("none", "part", "full")
CROSSING = ("not-crossing", "crossing", "irrelevant")
NATIVE_CROSSING = {"0": "not-crossing", "1": "crossing", "-1": "irrelevant"}
NATIVE_CROSS = {"not-crossing": "not-crossing", "crossing": "crossing", "crossing-irrelevant": "irrelevant"}
BOX_TAGS = {
    "action": ("standing", "walking"),
    "look": ("not-looking", "looking"),
    "gesture": ("__undefined__", "hand_ack", "hand_yield", "hand_rightofway", "nod", "other"),
    "state": ("__undefined__", "red", "yellow", "green"),
}
TRAITS = {
    "age": ("child", "young", "adult", "senior"),
    "gender": ("n/a", "female", "male"),
    "intersection": ("midblock", "T", "T-left", "T-right", "four-way"),
    "signalized": ("n/a", "C", "S", "CS"),
    "traffic_direction": ("OW", "TW"),
}
TRAFFIC_LIGHT = ("n/a", "red", "yellow", "green")
OBJECT_TYPES = {
    "vehicle": ("car", "truck", "bus", "train", "bicycle", "bike"),
    "traffic_light": ("regular", "transit", "pedestrian"),
    "sign": (
        "ped_blue",
        "ped_yellow",
        "ped_white",
        "ped_text",
        "stop_sign",
        "bus_stop",
        "train_stop",
        "construction",
        "other",
    ),
}
OBJECT_TYPE = tuple(dict.fromkeys(kind for kinds in OBJECT_TYPES.values() for kind in kinds))
PEDESTRIAN_SIGNS = OBJECT_TYPES["sign"][:4]
POINTS = ("crossing_point", "critical_point", "exp_start_point")
SENSORS = {
    "OBD_speed": "ego_speed_kmh",
    "GPS_speed": "gps_speed_kmh",
    "heading_angle": "heading_deg",
    "latitude": "latitude",
    "longitude": "longitude",
    "yaw": "yaw",
    "pitch": "pitch",
    "roll": "roll",
    "accX": "acc_x",
    "accY": "acc_y",
    "accZ": "acc_z",
    "gyroX": "gyro_x",
    "gyroY": "gyro_y",
    "gyroZ": "gyro_z",
}
VOCABULARIES: dict[str, tuple[str, ...]] = {
    "track_label": TRACK_LABEL,
    "occlusion": OCCLUSION,
    "pedestrian_action": BOX_TAGS["action"],
    **{name: labels for name, labels in BOX_TAGS.items() if name not in ("action", "state")},
    "cross": CROSSING,
    **TRAITS,
    "crossing": CROSSING,
    "object_type": OBJECT_TYPE,
    "traffic_light": TRAFFIC_LIGHT,
}

_BOX_ATTRIBUTES = ("frame", "keyframe", "occluded", "outside", "xbr", "xtl", "ybr", "ytl")
_BOX_CHILDREN = ("id", "type", "state", "occlusion", "action", "look", "gesture", "cross")
_OPENING = re.compile(r'<box ((?:[a-z]{1,20}="[^"<>]{0,40}" ?){1,20})>')
_NAMED = re.compile(r'([a-z]{1,20})="')
_CHILD = re.compile(r'<attribute name="([a-z]{1,20})">')
_MOST_FORMS = 16

PEDESTRIAN = Record(
    "pedestrian",
    "ped_attributes",
    (
        "age",
        "critical_point",
        "crossing",
        "crossing_point",
        "exp_start_point",
        "gender",
        "id",
        "intention_prob",
        "intersection",
        "num_lanes",
        "signalized",
        "traffic_direction",
    ),
)
_OBD_OPENING = re.compile(r"<frame ([^<>]{1,1000}?) ?/>")
_OBD_NAMED = re.compile(r'([A-Za-z_]{1,20})="')


def box_record(text: str) -> Record:
    """Boxes in the order of attributes and children that this file uses.

    Only the order is taken from the text, and only from names that are known; a box that is written in
    another way is read by lxml and gives the same row.
    """
    opening = _OPENING.search(text)
    attributes = tuple(_NAMED.findall(opening[1])) if opening else ()
    if sorted(attributes) != sorted(_BOX_ATTRIBUTES):
        attributes = _BOX_ATTRIBUTES
    forms: dict[tuple[str, ...], None] = {}
    for track in text.split("<track ")[1:]:
        form = tuple(_CHILD.findall(track[: track.find("</box>")]))
        if len(set(form)) == len(form) and set(form) <= set(_BOX_CHILDREN) and len(forms) < _MOST_FORMS:
            forms[form] = None
    return Record("box", "track", attributes, (*forms, _BOX_CHILDREN))


def vehicle_record(text: str) -> Record:
    """Frames of the vehicle's sensors in the order of attributes that this file uses."""
    wanted = ("id", *SENSORS)
    opening = _OBD_OPENING.search(text)
    attributes = tuple(_OBD_NAMED.findall(opening[1])) if opening else ()
    return Record("frame", "vehicle_info", attributes if sorted(attributes) == sorted(wanted) else wanted)
