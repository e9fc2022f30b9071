from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TurnState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_STATE_UNSPECIFIED: _ClassVar[TurnState]
    TURN_STATE_PENDING: _ClassVar[TurnState]
    TURN_STATE_SEARCHABLE: _ClassVar[TurnState]
    TURN_STATE_NO_MEMORY: _ClassVar[TurnState]
    TURN_STATE_FAILED: _ClassVar[TurnState]
    TURN_STATE_FORGOTTEN: _ClassVar[TurnState]

class Feature(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEATURE_UNSPECIFIED: _ClassVar[Feature]
    FEATURE_FILTER_SESSIONS: _ClassVar[Feature]
    FEATURE_FILTER_TIME: _ClassVar[Feature]
    FEATURE_FORGET_MEMORIES: _ClassVar[Feature]
    FEATURE_FORGET_TURNS: _ClassVar[Feature]
    FEATURE_FORGET_SESSIONS: _ClassVar[Feature]
    FEATURE_FORGET_DRY_RUN: _ClassVar[Feature]
    FEATURE_LIST_MEMORIES: _ClassVar[Feature]
    FEATURE_SOURCES: _ClassVar[Feature]
    FEATURE_SCORES: _ClassVar[Feature]
    FEATURE_EVENT_TIME: _ClassVar[Feature]
    FEATURE_TIME_ZONES: _ClassVar[Feature]
    FEATURE_REFERENCE_TIME: _ClassVar[Feature]
    FEATURE_VALIDITY: _ClassVar[Feature]
    FEATURE_NO_MEMORY: _ClassVar[Feature]
    FEATURE_BUFFERING: _ClassVar[Feature]
    FEATURE_USAGE: _ClassVar[Feature]

class Support(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUPPORT_UNSPECIFIED: _ClassVar[Support]
    SUPPORT_UNSUPPORTED: _ClassVar[Support]
    SUPPORT_EMULATED: _ClassVar[Support]
    SUPPORT_NATIVE: _ClassVar[Support]

class Component(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPONENT_UNSPECIFIED: _ClassVar[Component]
    COMPONENT_VECTOR: _ClassVar[Component]
    COMPONENT_GRAPH: _ClassVar[Component]
    COMPONENT_KEYWORD: _ClassVar[Component]
    COMPONENT_RAW_TURNS: _ClassVar[Component]
    COMPONENT_HISTORY: _ClassVar[Component]
    COMPONENT_CACHE: _ClassVar[Component]
    COMPONENT_LOG: _ClassVar[Component]
TURN_STATE_UNSPECIFIED: TurnState
TURN_STATE_PENDING: TurnState
TURN_STATE_SEARCHABLE: TurnState
TURN_STATE_NO_MEMORY: TurnState
TURN_STATE_FAILED: TurnState
TURN_STATE_FORGOTTEN: TurnState
FEATURE_UNSPECIFIED: Feature
FEATURE_FILTER_SESSIONS: Feature
FEATURE_FILTER_TIME: Feature
FEATURE_FORGET_MEMORIES: Feature
FEATURE_FORGET_TURNS: Feature
FEATURE_FORGET_SESSIONS: Feature
FEATURE_FORGET_DRY_RUN: Feature
FEATURE_LIST_MEMORIES: Feature
FEATURE_SOURCES: Feature
FEATURE_SCORES: Feature
FEATURE_EVENT_TIME: Feature
FEATURE_TIME_ZONES: Feature
FEATURE_REFERENCE_TIME: Feature
FEATURE_VALIDITY: Feature
FEATURE_NO_MEMORY: Feature
FEATURE_BUFFERING: Feature
FEATURE_USAGE: Feature
SUPPORT_UNSPECIFIED: Support
SUPPORT_UNSUPPORTED: Support
SUPPORT_EMULATED: Support
SUPPORT_NATIVE: Support
COMPONENT_UNSPECIFIED: Component
COMPONENT_VECTOR: Component
COMPONENT_GRAPH: Component
COMPONENT_KEYWORD: Component
COMPONENT_RAW_TURNS: Component
COMPONENT_HISTORY: Component
COMPONENT_CACHE: Component
COMPONENT_LOG: Component

class Turn(_message.Message):
    __slots__ = ("turn_id", "session_id", "role", "name", "text", "time", "time_zone", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    turn_id: str
    session_id: str
    role: str
    name: str
    text: str
    time: _timestamp_pb2.Timestamp
    time_zone: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, turn_id: _Optional[str] = ..., session_id: _Optional[str] = ..., role: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TurnError(_message.Message):
    __slots__ = ("reason", "message", "retryable")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    retryable: bool
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ..., retryable: bool = ...) -> None: ...

class TurnResult(_message.Message):
    __slots__ = ("turn_id", "state", "duplicate", "memory_ids", "error")
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    turn_id: str
    state: TurnState
    duplicate: bool
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    error: TurnError
    def __init__(self, turn_id: _Optional[str] = ..., state: _Optional[_Union[TurnState, str]] = ..., duplicate: bool = ..., memory_ids: _Optional[_Iterable[str]] = ..., error: _Optional[_Union[TurnError, _Mapping]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelUsage]
    def __init__(self, models: _Optional[_Iterable[_Union[ModelUsage, _Mapping]]] = ...) -> None: ...

class ModelUsage(_message.Message):
    __slots__ = ("model", "purpose", "calls", "input_tokens", "output_tokens", "estimated")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    model: str
    purpose: str
    calls: int
    input_tokens: int
    output_tokens: int
    estimated: bool
    def __init__(self, model: _Optional[str] = ..., purpose: _Optional[str] = ..., calls: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., estimated: bool = ...) -> None: ...

class StageTiming(_message.Message):
    __slots__ = ("stage", "ms")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    MS_FIELD_NUMBER: _ClassVar[int]
    stage: str
    ms: float
    def __init__(self, stage: _Optional[str] = ..., ms: _Optional[float] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("system",)
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    system: str
    def __init__(self, system: _Optional[str] = ...) -> None: ...

class Software(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class FeatureSupport(_message.Message):
    __slots__ = ("feature", "support")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_FIELD_NUMBER: _ClassVar[int]
    feature: Feature
    support: Support
    def __init__(self, feature: _Optional[_Union[Feature, str]] = ..., support: _Optional[_Union[Support, str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_turns_per_request", "max_request_bytes", "max_turn_bytes", "max_top_k", "max_query_bytes", "max_page_size", "max_wait")
    MAX_TURNS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TURN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TOP_K_FIELD_NUMBER: _ClassVar[int]
    MAX_QUERY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_FIELD_NUMBER: _ClassVar[int]
    max_turns_per_request: int
    max_request_bytes: int
    max_turn_bytes: int
    max_top_k: int
    max_query_bytes: int
    max_page_size: int
    max_wait: _duration_pb2.Duration
    def __init__(self, max_turns_per_request: _Optional[int] = ..., max_request_bytes: _Optional[int] = ..., max_turn_bytes: _Optional[int] = ..., max_top_k: _Optional[int] = ..., max_query_bytes: _Optional[int] = ..., max_page_size: _Optional[int] = ..., max_wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("purpose", "name", "dimension")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    purpose: str
    name: str
    dimension: int
    def __init__(self, purpose: _Optional[str] = ..., name: _Optional[str] = ..., dimension: _Optional[int] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("system", "adapter", "framework", "protocol_versions", "features", "limits", "models", "config_digest")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    system: str
    adapter: Software
    framework: Software
    protocol_versions: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedCompositeFieldContainer[FeatureSupport]
    limits: Limits
    models: _containers.RepeatedCompositeFieldContainer[Model]
    config_digest: str
    def __init__(self, system: _Optional[str] = ..., adapter: _Optional[_Union[Software, _Mapping]] = ..., framework: _Optional[_Union[Software, _Mapping]] = ..., protocol_versions: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[_Union[FeatureSupport, _Mapping]]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., config_digest: _Optional[str] = ...) -> None: ...

class AddTurnsRequest(_message.Message):
    __slots__ = ("system", "space_id", "turns")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    turns: _containers.RepeatedCompositeFieldContainer[Turn]
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ...) -> None: ...

class AddTurnsResponse(_message.Message):
    __slots__ = ("results", "usage", "timing")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TurnResult]
    usage: Usage
    timing: _containers.RepeatedCompositeFieldContainer[StageTiming]
    def __init__(self, results: _Optional[_Iterable[_Union[TurnResult, _Mapping]]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Iterable[_Union[StageTiming, _Mapping]]] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ("system", "space_id", "timeout")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    timeout: _duration_pb2.Duration
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ("done", "pending", "failed_count", "failed", "space_usage", "timing")
    DONE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    FAILED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SPACE_USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    done: bool
    pending: int
    failed_count: int
    failed: _containers.RepeatedCompositeFieldContainer[TurnResult]
    space_usage: Usage
    timing: _containers.RepeatedCompositeFieldContainer[StageTiming]
    def __init__(self, done: bool = ..., pending: _Optional[int] = ..., failed_count: _Optional[int] = ..., failed: _Optional[_Iterable[_Union[TurnResult, _Mapping]]] = ..., space_usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Iterable[_Union[StageTiming, _Mapping]]] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("session_ids", "since", "until")
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, session_ids: _Optional[_Iterable[str]] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RetrieveRequest(_message.Message):
    __slots__ = ("system", "space_id", "query", "top_k", "reference_time", "time_zone", "filter")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    query: str
    top_k: int
    reference_time: _timestamp_pb2.Timestamp
    time_zone: str
    filter: Filter
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., query: _Optional[str] = ..., top_k: _Optional[int] = ..., reference_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., filter: _Optional[_Union[Filter, _Mapping]] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("session_id", "turn_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    turn_id: str
    def __init__(self, session_id: _Optional[str] = ..., turn_id: _Optional[str] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("memory_id", "text", "score", "kind", "time", "valid_from", "valid_to", "sources", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    text: str
    score: float
    kind: str
    time: _timestamp_pb2.Timestamp
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, memory_id: _Optional[str] = ..., text: _Optional[str] = ..., score: _Optional[float] = ..., kind: _Optional[str] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., valid_from: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class RetrieveResponse(_message.Message):
    __slots__ = ("memories", "pending", "failed_count", "usage", "timing")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    FAILED_COUNT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[Memory]
    pending: int
    failed_count: int
    usage: Usage
    timing: _containers.RepeatedCompositeFieldContainer[StageTiming]
    def __init__(self, memories: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., pending: _Optional[int] = ..., failed_count: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Iterable[_Union[StageTiming, _Mapping]]] = ...) -> None: ...

class Selector(_message.Message):
    __slots__ = ("memory_ids", "turn_ids", "session_ids")
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    TURN_IDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    turn_ids: _containers.RepeatedScalarFieldContainer[str]
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, memory_ids: _Optional[_Iterable[str]] = ..., turn_ids: _Optional[_Iterable[str]] = ..., session_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("system", "space_id", "selector", "dry_run", "request_id")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    selector: Selector
    dry_run: bool
    request_id: str
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., selector: _Optional[_Union[Selector, _Mapping]] = ..., dry_run: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class Residue(_message.Message):
    __slots__ = ("component", "items", "verified", "note")
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    component: Component
    items: int
    verified: bool
    note: str
    def __init__(self, component: _Optional[_Union[Component, str]] = ..., items: _Optional[int] = ..., verified: bool = ..., note: _Optional[str] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ("erased_memory_ids", "erased_turn_ids", "not_found", "residual", "usage", "timing")
    ERASED_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    ERASED_TURN_IDS_FIELD_NUMBER: _ClassVar[int]
    NOT_FOUND_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    erased_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    erased_turn_ids: _containers.RepeatedScalarFieldContainer[str]
    not_found: _containers.RepeatedScalarFieldContainer[str]
    residual: _containers.RepeatedCompositeFieldContainer[Residue]
    usage: Usage
    timing: _containers.RepeatedCompositeFieldContainer[StageTiming]
    def __init__(self, erased_memory_ids: _Optional[_Iterable[str]] = ..., erased_turn_ids: _Optional[_Iterable[str]] = ..., not_found: _Optional[_Iterable[str]] = ..., residual: _Optional[_Iterable[_Union[Residue, _Mapping]]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Iterable[_Union[StageTiming, _Mapping]]] = ...) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("system", "space_id", "request_id")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    request_id: str
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResetResponse(_message.Message):
    __slots__ = ("erased_memories", "erased_turns", "residual", "usage", "timing")
    ERASED_MEMORIES_FIELD_NUMBER: _ClassVar[int]
    ERASED_TURNS_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    erased_memories: int
    erased_turns: int
    residual: _containers.RepeatedCompositeFieldContainer[Residue]
    usage: Usage
    timing: _containers.RepeatedCompositeFieldContainer[StageTiming]
    def __init__(self, erased_memories: _Optional[int] = ..., erased_turns: _Optional[int] = ..., residual: _Optional[_Iterable[_Union[Residue, _Mapping]]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Iterable[_Union[StageTiming, _Mapping]]] = ...) -> None: ...

class ListTurnsRequest(_message.Message):
    __slots__ = ("system", "space_id", "page_size", "page_token")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    page_size: int
    page_token: str
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class TurnRecord(_message.Message):
    __slots__ = ("turn_id", "session_id", "state", "memory_ids", "error")
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    turn_id: str
    session_id: str
    state: TurnState
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    error: TurnError
    def __init__(self, turn_id: _Optional[str] = ..., session_id: _Optional[str] = ..., state: _Optional[_Union[TurnState, str]] = ..., memory_ids: _Optional[_Iterable[str]] = ..., error: _Optional[_Union[TurnError, _Mapping]] = ...) -> None: ...

class ListTurnsResponse(_message.Message):
    __slots__ = ("turns", "next_page_token")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[TurnRecord]
    next_page_token: str
    def __init__(self, turns: _Optional[_Iterable[_Union[TurnRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListMemoriesRequest(_message.Message):
    __slots__ = ("system", "space_id", "page_size", "page_token")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    system: str
    space_id: str
    page_size: int
    page_token: str
    def __init__(self, system: _Optional[str] = ..., space_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListMemoriesResponse(_message.Message):
    __slots__ = ("memories", "next_page_token")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[Memory]
    next_page_token: str
    def __init__(self, memories: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListSystemsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SystemSummary(_message.Message):
    __slots__ = ("system", "ready")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    system: str
    ready: bool
    def __init__(self, system: _Optional[str] = ..., ready: bool = ...) -> None: ...

class ListSystemsResponse(_message.Message):
    __slots__ = ("systems",)
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    systems: _containers.RepeatedCompositeFieldContainer[SystemSummary]
    def __init__(self, systems: _Optional[_Iterable[_Union[SystemSummary, _Mapping]]] = ...) -> None: ...
