"""The sizes of the published RUMBA (arXiv:2607.21447, Tables 3 and 24): is a file of it whole, and read right?"""

from collections.abc import Mapping
from types import MappingProxyType

DIALOGUES = 85
QUESTIONS = 1543
EVIDENCE_SESSIONS = 2232

SLICES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "scope": {"single": 939, "multi": 604},
        "temporality": {"atemporal": 1128, "temporal": 415},
        "scope_temporality": {
            "single+atemporal": 678,
            "multi+atemporal": 450,
            "single+temporal": 261,
            "multi+temporal": 154,
        },
        "temporal_expression": {"explicit": 102, "implicit": 69, "none": 244},
        "group": {"extraction": 1079, "general_reasoning": 149, "temporal_reasoning": 161, "abstention": 154},
    }
)
"""Questions a slice, by axis."""
