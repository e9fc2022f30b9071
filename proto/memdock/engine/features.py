"""What a system declares, and how a call that needs more is refused."""

import hashlib
import json

from memdock.convert import numbers_of, wire_duration
from memdock.errors import UnimplementedError
from memdock.system import SystemInfo
from memdock.types import Feature, Limits, Query, Selection, Software, Support
from memdock.v1 import memory_pb2 as pb

_FEATURE_NUMBERS = numbers_of(Feature, "FEATURE")
_SUPPORT_NUMBERS = numbers_of(Support, "SUPPORT")


def has(info: SystemInfo, feature: Feature) -> bool:
    """Whether the system declares the feature, native or emulated."""
    return info.features.get(feature, Support.UNSUPPORTED) is not Support.UNSUPPORTED


def require(info: SystemInfo, feature: Feature, reason: str, what: str) -> None:
    """Refuses what the system lacks."""
    if not has(info, feature):
        raise UnimplementedError(reason, f"{what}: the system {info.name} does not declare FEATURE_{feature}")


def require_query(info: SystemInfo, query: Query) -> None:
    """Refuses a query that asks for an undeclared filter or frame."""
    if query.session_ids:
        require(info, Feature.FILTER_SESSIONS, "FILTER_UNSUPPORTED", "filter.session_ids")
    if query.since is not None or query.until is not None:
        require(info, Feature.FILTER_TIME, "FILTER_UNSUPPORTED", "filter.since and filter.until")
    if query.reference_time is not None:
        require(info, Feature.REFERENCE_TIME, "FEATURE_UNSUPPORTED", "reference_time")


def require_selection(info: SystemInfo, selection: Selection, *, dry_run: bool) -> None:
    """Refuses a selector, or a dry run, that the system does not declare."""
    if selection.memory_ids:
        require(info, Feature.FORGET_MEMORIES, "SELECTOR_UNSUPPORTED", "selector.memory_ids")
    if selection.turn_ids:
        require(info, Feature.FORGET_TURNS, "SELECTOR_UNSUPPORTED", "selector.turn_ids")
    if selection.session_ids:
        require(info, Feature.FORGET_SESSIONS, "SELECTOR_UNSUPPORTED", "selector.session_ids")
    if dry_run:
        require(info, Feature.FORGET_DRY_RUN, "FEATURE_UNSUPPORTED", "dry_run")


def describe(info: SystemInfo, limits: Limits) -> pb.DescribeResponse:
    """What Describe answers; every feature of the closed list stands in it once."""
    return pb.DescribeResponse(
        system=info.name,
        adapter=_software(info.adapter),
        framework=_software(info.framework),
        protocol_versions=["v1"],
        features=[
            pb.FeatureSupport(feature=number, support=_SUPPORT_NUMBERS[info.features.get(feature, Support.UNSUPPORTED)])
            for feature, number in _FEATURE_NUMBERS.items()
        ],
        limits=pb.Limits(
            max_turns_per_request=limits.max_turns_per_request,
            max_request_bytes=limits.max_request_bytes,
            max_turn_bytes=limits.max_turn_bytes,
            max_top_k=limits.max_top_k,
            max_query_bytes=limits.max_query_bytes,
            max_page_size=limits.max_page_size,
            max_wait=wire_duration(limits.max_wait_s),
        ),
        models=[pb.Model(purpose=one.purpose, name=one.name, dimension=one.dimension) for one in info.models],
        config_digest=_digest(info),
    )


def _software(software: Software) -> pb.Software:
    return pb.Software(name=software.name, version=software.version)


def _digest(info: SystemInfo) -> str:
    canonical = json.dumps(dict(info.config), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
