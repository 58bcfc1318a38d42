"""Bodies: where everybody is and moves to, as arrays; they keep out of each other's way and off the road."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.simulator.walkers.ways import Ways

EDGE_M = 0.25
"""Nobody who walks on comes nearer to the edges of a pavement."""
PUSH_OFF = 2.6
TURN_RAD_S = 4.0
LAG_S = 0.35


class Bodies:
    """Positions, speeds and headings of people on bands.

    Args:
        ways: the pavements.
        band: (n,) numbers of bands.
        s: (n,) metres along them.
        u: (n,) metres from their kerbs.
        party: (n,) people of a number belong together.
        keep_left: whether people dodge to the left.
    """

    def __init__(
        self, ways: Ways, band: Ints, s: Floats, u: Floats, party: Ints, keep_left: bool, obstacles: Floats
    ) -> None:
        n = len(band)
        self.ways, self.band, self.s, self.u = ways, band.copy(), s.copy(), u.copy()
        self.party, self._dodge = party, 1.0 if keep_left else -1.0
        self.vs, self.vu = np.zeros(n), np.zeros(n)
        self.goal_s, self.goal_u = np.zeros(n), np.zeros(n)
        self.facing = np.full(n, np.nan)
        self.free = np.zeros(n, dtype=np.bool_)
        self.still = np.zeros(n, dtype=np.bool_)
        self.narrow = np.zeros(n, dtype=np.bool_)
        self.xy = ways.world(band, s, u)
        self.velocity = np.zeros((n, 2))
        self.heading = np.zeros(n)
        self.road_turn = np.zeros(n)
        self._lag = np.zeros((n, 2))
        self._obstacles = obstacles

    def switch(self, k: int, band: int, s: float, u: float, turned: bool) -> None:
        """Describe somebody by another band without moving them.

        Args:
            k: who.
            band: number of the new band.
            s: metres along it.
            u: metres from its kerb.
            turned: whether the new line runs the other way.
        """
        self.band[k], self.s[k], self.u[k] = band, s, u
        if turned:
            self.vs[k] = -self.vs[k]
        self._lag[k] = self.xy[k] - self.ways.place(band, s, u)

    def step(self, dt: float, who: Ints) -> None:
        """Move those who are about.

        Args:
            dt: seconds.
            who: (m,) rows.
        """
        _, turn, bend = self.ways.frame(self.band[who], self.s[who])
        side = self.ways.side[self.band[who]]
        along, out = np.stack([np.cos(turn), np.sin(turn)], 1), np.stack([-np.sin(turn), np.cos(turn)], 1)
        slow, push = self._avoid(who)
        # Where the pavement is built out into the road there is no room to step aside.
        goal_s = self.goal_s[who] * slow + np.where(self.narrow[who], 0.0, (push * along).sum(1))
        goal_u = self.goal_u[who] * slow + side * (push * out).sum(1)
        change = np.stack([goal_s - self.vs[who], goal_u - self.vu[who]], 1)
        size = np.maximum(np.hypot(change[:, 0], change[:, 1]), 1e-9)
        # At most 3 m/s2, in whatever direction: nobody starts or stops at once.
        change *= np.minimum(1.0, 3.0 * dt / size)[:, None]
        self.vs[who] += change[:, 0]
        self.vu[who] += change[:, 1]
        self._advance(dt, who, bend * side * (self.ways.half[self.band[who]] + self.u[who]))
        _, turn, _ = self.ways.frame(self.band[who], self.s[who])
        self.road_turn[who] = turn
        self._turn(dt, who, turn)

    def _advance(self, dt: float, who: Ints, bend: Floats) -> None:
        """Take a step, on the inside of bends a shorter one along the line."""
        # Bounded, since beyond the centre of a tight bend the factor would be 0 or turn round.
        self.s[who] += self.vs[who] * dt / np.clip(1.0 - bend, 0.3, 3.0)
        u = self.u[who] + self.vu[who] * dt
        band = self.band[who]
        kept = np.clip(u, EDGE_M, self.ways.width[band] - EDGE_M)
        self.u[who] = np.where(self.free[who], u, kept)
        # An exponential, so that how fast it dies away does not depend on the length of a step.
        self._lag[who] *= np.exp(-dt / LAG_S)
        before = self.xy[who]
        self.xy[who] = self.ways.world(band, self.s[who], self.u[who]) + self._lag[who]
        self.velocity[who] = (self.xy[who] - before) / dt

    def _turn(self, dt: float, who: Ints, road: Floats) -> None:
        """Turn towards where they go, or where they want to face while they stand or step back."""
        facing = self.facing[who]
        going = np.arctan2(self.velocity[who, 1], self.velocity[who, 0])
        moving = np.hypot(self.velocity[who, 0], self.velocity[who, 1]) > 0.25
        aim = np.where(np.isnan(facing), np.where(moving, going, self.heading[who]), road + facing)
        off = (aim - self.heading[who] + np.pi) % (2 * np.pi) - np.pi
        self.heading[who] += np.clip(off, -TURN_RAD_S * dt, TURN_RAD_S * dt)

    def _avoid(self, who: Ints) -> tuple[Floats, Floats]:
        """(m,) how much to slow down, and (m, 2) a velocity that leads out of others' way."""
        xy, velocity = self.xy[who], self.velocity[who]
        pace = np.hypot(velocity[:, 0], velocity[:, 1])
        # Who stands has no direction; far from 0, or trembling would be blown up to one.
        front = velocity / np.maximum(pace, 0.05)[:, None]
        blocks = np.concatenate([xy, self._near_obstacles(xy)])
        away = blocks[None] - xy[:, None]
        # Everybody is 0 m from themselves.
        apart = np.hypot(away[..., 0], away[..., 1]) + 1e-9
        others = len(blocks) - len(who)
        same = np.zeros((len(who), len(blocks)), dtype=np.bool_)
        same[:, : len(who)] = self.party[who][:, None] == self.party[who]
        room = np.where(same, 0.5, 0.75)
        mine = np.zeros_like(same)
        np.fill_diagonal(mine, True)
        press = np.where(mine, 0.0, np.maximum(room - apart, 0.0))
        push: Floats = -PUSH_OFF * (press[..., None] * away / apart[..., None]).sum(1)
        ahead = away[..., 0] * front[:, None, 0] + away[..., 1] * front[:, None, 1]
        left = front[:, None, 0] * away[..., 1] - front[:, None, 1] * away[..., 0]
        theirs = np.concatenate([velocity, np.zeros((others, 2))])
        closing = pace[:, None] - (front[:, None] * theirs[None]).sum(2)
        # Looks 1.8 s ahead by the speed at which they close, so that nobody dodges who walks the same way.
        met = ~same & (ahead > 0.2) & (ahead < 0.6 + 1.8 * closing) & (np.abs(left) < 0.7) & (closing > 0.2)
        met &= (pace > 0.3)[:, None]
        # Head on both would choose by rounding, and into each other's
        # way: then by the side that a country drives on.
        sign = np.where(np.abs(left) > 0.15, -np.sign(left), self._dodge)
        sway = np.where(met, sign * (0.75 - np.abs(left)), 0.0)
        most = np.abs(sway).argmax(1)
        chosen = 1.1 * np.take_along_axis(sway, most[:, None], 1)[:, 0]
        push = push + chosen[:, None] * np.stack([-front[:, 1], front[:, 0]], 1)
        hard: Bools = met & (ahead < 0.9) & (np.abs(left) < 0.4)
        slow = np.where(hard.any(1), 0.45, 1.0)
        # Who waits stands his ground, or a crowd at the kerb would drift on to the road.
        push[self.still[who]] *= 0.0
        return slow, push

    def _near_obstacles(self, xy: Floats) -> Floats:
        """The things that stand on pavements near anybody."""
        if not len(self._obstacles) or not len(xy):
            return np.zeros((0, 2))
        low, high = xy.min(0) - 3.0, xy.max(0) + 3.0
        inside = ((self._obstacles > low) & (self._obstacles < high)).all(1)
        found: npt.NDArray[np.float64] = self._obstacles[inside]
        return found
