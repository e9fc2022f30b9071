"""Where the labels of a drawing's points stand, so that none covers another, a point or an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

CHARACTER, LINE = 6.7, 13.0
"""Pixels that a character of the drawing takes at most on the average, and a line."""

_NEAR = 9.0
_ASIDE = tuple((side, step) for step in (0, -12, 12, -20, 20, -30, 30, -42, 42, -56, 56, -72, 72) for side in (1, -1))
"""Right and left of the point, then ever farther above and below."""

_OUTSIDE = 10_000.0
_FAR = 0.9
"""What a pixel of distance costs, in square pixels of overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """In pixels, y from the top."""

    left: float
    right: float
    top: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, reach: float) -> "Box":
        """A square about a point."""
        return cls(left=x - reach, right=x + reach, top=y - reach, bottom=y + reach)

    def shared(self, other: "Box") -> float:
        """The area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, wide) * max(0.0, high)

    def holds(self, other: "Box") -> bool:
        """Whether `other` lies inside."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A text and the point that it names."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text at its place: `x` is its start, or its end where `ends`; `y` its base line. `box` is what it covers.

    `far`: so far from its point that a line must lead there.
    """

    text: str
    x: float
    y: float
    ends: bool
    far: bool
    box: Box


def placed(anchors: Sequence[Anchor], taken: Sequence[Box], frame: Box) -> list[Label]:
    """A label for each anchor, in their order: one after another to the place that costs least.

    What a label covers of `taken` and of the labels before it costs, and so does the way to it; outside of `frame` it
    stands only where there is no other place. The longest texts choose first, since they find room least easily.
    """
    covered = list(taken)
    found: dict[int, Label] = {}
    for place in sorted(range(len(anchors)), key=lambda place: -len(anchors[place].text)):
        label = min(_candidates(anchors[place]), key=lambda each: _cost(each, anchors[place], covered, frame))
        covered.append(label.box)
        found[place] = label
    return [found[place] for place in range(len(anchors))]


def _candidates(anchor: Anchor) -> list[Label]:
    return [_label(anchor, side, step) for side, step in _ASIDE]


def _label(anchor: Anchor, side: int, step: int) -> Label:
    width = CHARACTER * len(anchor.text)
    x, middle = anchor.x + side * _NEAR, anchor.y + step
    left = x if side > 0 else x - width
    return Label(
        text=anchor.text,
        x=round(x, 1),
        y=round(middle + 4, 1),
        ends=side < 0,
        far=abs(step) > 14,
        box=Box(left=left, right=left + width, top=middle - LINE / 2, bottom=middle + LINE / 2),
    )


def _cost(label: Label, anchor: Anchor, covered: Sequence[Box], frame: Box) -> float:
    overlap = sum(label.box.shared(other) for other in covered)
    way = abs(label.y - 4 - anchor.y) + (2 if label.ends else 0)
    return overlap + _FAR * way + (0 if frame.holds(label.box) else _OUTSIDE)
