"""What cortex reaches in one call: the embedder, the chat model, the collection of one user.

cortex swallows what any of them raises, and goes on with zero vectors, no keywords, or a note less. So each stands
behind a door that keeps what failed.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import jsonschema
from openai import OpenAI

from memdock.adapter.command import ModelAt
from memdock.errors import error
from memdock_cortex.store import Note, Store

CallT = TypeVar("CallT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Clients of both models. `max_tokens`: how long a reply of the chat model may be."""

    chat: OpenAI
    chat_model: str
    embedder: OpenAI
    embedder_model: str
    dimension: int
    max_tokens: int

    @classmethod
    def at(cls, chat: ModelAt, embedder: ModelAt, *, max_tokens: int) -> "Models":
        """Those behind two addresses, each with its key."""
        return cls(
            chat=OpenAI(base_url=chat.url, api_key=chat.key),
            chat_model=chat.model,
            embedder=OpenAI(base_url=embedder.url, api_key=embedder.key),
            embedder_model=embedder.model,
            dimension=embedder.dimension,
            max_tokens=max_tokens,
        )

    def vector(self, text: str) -> list[float]:
        """A text's vector."""
        found = self.embedder.embeddings.create(model=self.embedder_model, input=text.strip())
        vector = [float(each) for each in found.data[0].embedding]
        if len(vector) != self.dimension:
            raise error(
                "PROVIDER_PROTOCOL_ERROR",
                f"The embedding model answered {len(vector)} numbers: --embedder-dimension says {self.dimension}.",
            )
        return vector

    def reply(self, prompt: str, response_format: Any, temperature: float) -> str:
        """The JSON that cortex asks for, held to its schema."""
        answer = self.chat.chat.completions.create(
            model=self.chat_model,
            messages=[
                {"role": "system", "content": "You must respond with a JSON object."},
                {"role": "user", "content": prompt},
            ],
            response_format=response_format,
            temperature=temperature,
            max_tokens=self.max_tokens,
        )
        content = answer.choices[0].message.content or ""
        try:
            value = json.loads(content[content.find("{") : content.rfind("}") + 1], strict=False)
            jsonschema.validate(value, response_format["json_schema"]["schema"])
        except (ValueError, jsonschema.ValidationError):
            raise error("PROVIDER_PROTOCOL_ERROR", "The model's JSON is not what it was asked for.") from None
        return json.dumps(value)

    def close(self) -> None:
        """Ends the connections."""
        self.chat.close()
        self.embedder.close()


def _kept(method: CallT) -> CallT:
    """Keeps what a door raises."""

    @wraps(method)
    def kept(doors: "Doors", *args: Any, **more: Any) -> Any:
        try:
            return method(doors, *args, **more)
        except Exception as fault:
            doors.faults.append(fault)
            raise

    return kept  # type: ignore[return-value]


class Doors:
    """Stands for cortex's embedding manager, language model and collection. Used by one call.

    `new_id` is the note that the call adds. It is stored at once, since cortex then looks for its neighbours; what
    becomes of those waits for `commit`, so that an add that fails leaves them as they were.
    """

    def __init__(self, models: Models, store: Store, user: str, new_id: str = "") -> None:
        self._models = models
        self._store = store
        self._user = user
        self._new_id = new_id
        self._stored = False
        self._later: dict[str, Note] = {}
        self._shown: set[str] = set()
        self.faults: list[Exception] = []

    @_kept
    def get_embedding(self, content: str) -> list[float]:
        """Of the embedding manager."""
        return self._models.vector(content)

    @_kept
    def get_completion(self, prompt: str, response_format: dict[str, Any], temperature: float = 0.7) -> str:
        """Of the language model."""
        return self._models.reply(prompt, response_format, temperature)

    @_kept
    def count(self) -> int:
        """Of the collection, as all that follow."""
        return self._store.count(self._user)

    @_kept
    def get(self, **asked: Any) -> Any:
        """Notes by ids or fields."""
        return self._store.get(self._user, **asked)

    @_kept
    def query(self, **asked: Any) -> Any:
        """The nearest notes."""
        found = self._store.query(self._user, **asked)
        self._shown.update(found["ids"][0])
        return found

    @_kept
    def add(
        self, documents: Sequence[str], metadatas: Sequence[dict[str, Any]], ids: Sequence[str], embeddings: Any
    ) -> None:
        """Stores one note, or keeps it for later."""
        note = Note(note_id=ids[0], text=documents[0], fields=metadatas[0], vector=embeddings[0])
        if note.note_id == self._new_id and not self._stored:
            self._store.write(self._user, [note])
            self._stored = True
        else:
            self._later[note.note_id] = note

    def commit(self) -> None:
        """Stores what notes have become, in one transaction.

        Each keeps beside it what it was at first (`origin`), and the ids of the notes whose words may have come into it
        (`seen`): all that the model was shown with it, and all that those had seen.
        """
        if not self._later:
            return
        shown = self._shown | {self._new_id}
        seen = shown.union(*(seen_by(note) for note in self._store.notes(self._user, shown)))
        before = {note.note_id: note for note in self._store.notes(self._user, self._later.keys())}
        changed = [
            replace(
                note,
                fields={
                    **note.fields,
                    "origin": origin_of(before[note.note_id]),
                    "seen": json.dumps(sorted((seen | seen_by(before[note.note_id])) - {note.note_id})),
                },
            )
            for note in self._later.values()
        ]
        self._store.write(self._user, changed)


def seen_by(note: Note) -> set[str]:
    """The notes whose words may have come into this one."""
    return set(json.loads(note.fields.get("seen", "[]")))


def origin_of(note: Note) -> str:
    """What a note was before it changed at all, as JSON: its text, and its fields."""
    return str(note.fields.get("origin") or json.dumps({"text": note.text, "fields": dict(note.fields)}))
