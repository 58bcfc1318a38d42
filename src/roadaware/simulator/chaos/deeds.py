"""Deeds: which poses show which action, how fast poses go round, and what is heard of them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL
from roadaware.simulator.actors import Pose

PREFIX = "action:"
"""Facts of an actor that are called so tell in which frames it does an official action."""

_UPRIGHT = (
    Pose.STAND, Pose.WALK, Pose.WAVE, Pose.FILM, Pose.HOLD_FLAG, Pose.HOLD_SIGN, Pose.ARGUE, Pose.SHOUT,
    Pose.PHONE, Pose.CLAP, Pose.THREATEN, Pose.HANDS_UP,
)  # fmt: skip
DEEDS: Mapping[str, tuple[Pose, ...]] = {
    "arguing": (Pose.ARGUE, Pose.SHOUT),
    "arresting": (Pose.KNEEL, Pose.PUSH_OBJECT),
    "burning/setting fire": (Pose.STAND,),
    "carrying": (Pose.PUSH_OBJECT, Pose.STAND, Pose.WALK, Pose.RUN),
    "carrying casualty": (Pose.PUSH_OBJECT,),
    "chanting/cheering": (Pose.SHOUT, Pose.WAVE, Pose.HOLD_FLAG, Pose.HOLD_SIGN),
    "chasing": (Pose.RUN, Pose.WALK, Pose.STAND),
    "clapping": (Pose.CLAP,),
    "creating barricade": (Pose.PUSH_OBJECT,),
    "dancing": (Pose.DANCE,),
    "destroying": (Pose.PUNCH, Pose.THROW),
    "extinguishing fire": (Pose.PUSH_OBJECT,),
    "fighting": (Pose.PUNCH, Pose.SHOVE, Pose.KICK, Pose.FLINCH),
    "guarding": (Pose.STAND,),
    "hitting an object/smashing": (Pose.PUNCH,),
    "holding a burning stick": (Pose.STAND, Pose.WALK, Pose.RUN),
    "holding flag": (Pose.HOLD_FLAG,),
    "holding signage": (Pose.HOLD_SIGN,),
    "holding weapon": (Pose.THREATEN,),
    "hugging": (Pose.HUG,),
    "injured": (Pose.LIE,),
    "kneeling": (Pose.KNEEL,),
    "pinning": (Pose.KNEEL,),
    "pulling barricade": (Pose.PUSH_OBJECT,),
    "punching": (Pose.PUNCH,),
    "pushing": (Pose.SHOVE,),
    "raising fist": (Pose.WAVE,),
    "raising hands": (Pose.HANDS_UP,),
    "recording": (Pose.FILM,),
    "retreating": (Pose.FLINCH, Pose.WALK, Pose.STAND),
    "running/escaping": (Pose.RUN,),
    "shouting": (Pose.SHOUT,),
    "speaking/talking": (Pose.PHONE, Pose.STAND),
    "stealing/looting": (Pose.PUSH_OBJECT, Pose.KNEEL, Pose.STAND, Pose.WALK, Pose.RUN),
    "throwing object": (Pose.THROW,),
    "walking": (*_UPRIGHT, Pose.PUSH_OBJECT),
    "watching": (Pose.STAND, Pose.FILM),
    "waving flag": (Pose.HOLD_FLAG,),
    "waving flarestick": (Pose.STAND,),
    "waving hands": (Pose.WAVE,),
}
"""The official actions that occur, each with the poses that may show it."""

CODES: Mapping[str, int] = {name: ACTIONS_OFFICIAL.index(name) for name in DEEDS}
"""Place of an action in the official list."""

CYCLES_S: Mapping[Pose, float] = {
    Pose.STAND: 5.0,
    Pose.WAVE: 1.1,
    Pose.PUNCH: 0.95,
    Pose.SHOVE: 1.1,
    Pose.LIE: 5.0,
    Pose.FILM: 6.0,
    Pose.THROW: 1.6,
    Pose.HOLD_FLAG: 1.9,
    Pose.HOLD_SIGN: 1.8,
    Pose.KNEEL: 1.7,
    Pose.HUG: 4.5,
    Pose.ARGUE: 2.2,
    Pose.SHOUT: 1.8,
    Pose.PHONE: 5.0,
    Pose.CLAP: 0.95,
    Pose.FLINCH: 2.6,
    Pose.KICK: 1.2,
    Pose.THREATEN: 1.5,
    Pose.DANCE: 1.3,
    Pose.FALL: 1.6,
    Pose.HANDS_UP: 4.0,
}
"""Seconds in which the gait of somebody on one spot goes round."""
FLARE_S = 1.4
"""The same of somebody who swings a flare."""
RAISED = -0.5 * math.pi
"""Phase of a wave in which the arm points straight up, as a raised fist does."""
FRESH = (Pose.PUNCH, Pose.SHOVE, Pose.THROW, Pose.KICK, Pose.FALL)
"""Poses that begin at their beginning."""
MOVING = (*_UPRIGHT, Pose.RUN, Pose.PUSH_OBJECT)
"""Poses in which legs walk or run where somebody moves."""

CONTACT = ("fighting", "kicking", "pushing", "pulling", "grabbing", "holding onto", "hugging", "arresting")
"""Predicates that need arms to reach."""
REACH_M = 2.0
"""How far apart two may be while one does such a thing to the other."""
LEVELS: Mapping[str, float] = {
    "arguing": 1.2,
    "chanting/cheering": 1.6,
    "clanking (of metal)": 2.0,
    "clapping": 0.8,
    "crashing": 3.0,
    "crying": 1.0,
    "explosion": 9.0,
    "flare": 0.8,
    "shattering": 2.5,
    "shouting": 1.8,
    "shouting for help": 2.0,
    "siren (ambulance)": 3.0,
    "siren (fire engine)": 3.0,
    "siren (police)": 3.0,
    "sizzling": 0.7,
    "speaking": 0.4,
    "truck engine": 0.8,
    "whistling": 1.3,
}
"""How loud sounds are at one metre; a voice raised is 1."""
