"""A run as a job of n indexes, each a process anywhere: its shards' folders, and the merge by whoever ends last.

Everything is at the results address: `.shards/i-of-n` below it, and the merged run right in it. No index knows of the
others but by what they have written there.
"""

from collections.abc import Callable, Sequence

from memdock_evaluator.report.writing import PAGES, write_report
from memdock_evaluator.results.finalise import MANIFEST
from memdock_evaluator.results.folder import Folder, FolderError, FolderHeldError
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.run.merging import merge
from memdock_evaluator.run.pieces import MergeError

SHARDS = ".shards"
"""Hidden by its dot, so that the address is that of a run, or of none yet."""


def folder_of(out: str, shard: Shard) -> str:
    """Where a shard of the job at `out` is."""
    return f"{out.rstrip('/')}/{SHARDS}/{shard.number}-of-{shard.of}"


def refuse_another_run(out: str, shard: Shard) -> None:
    """Raises `MergeError` where `out` holds a run that this shard is no part of: before anything is asked or paid."""
    if (whole := _manifest(out)) is not None:
        mine = _manifest(folder_of(out, shard))
        if mine is None or mine.run_id not in whole.merged:
            raise _other_run(out, shard.of)


def merge_when_last(out: str, of: int, command: Sequence[str], say: Callable[[str], None]) -> bool:
    """Makes one run of the shards where all are complete; whether the run with its report is there now.

    To be called behind the end of a shard: whoever ends last finds the others' ends. Of several that end at once one
    gets the lease of `out` and merges; its index is begun again where it dies, and takes the lease over. Raises
    `MergeError` where `out` holds another run, and what `merge` and `write_report` raise.
    """
    shards = [folder_of(out, Shard(number=number, of=of)) for number in range(1, of + 1)]
    found = [_manifest(address) for address in shards]
    if waiting := sum(manifest is None or manifest.finished is None for manifest in found):
        say(f"{of - waiting} of {of} shards are complete; the last one merges them")
        return False
    whole = _manifest(out)
    if whole is None:
        try:
            whole = merge(Folder(out), [("", Folder(address)) for address in shards], tuple(command))
        except FolderHeldError:
            say(f"another index merges the shards into {out}")
            return False
        except (MergeError, FolderError):
            # Of two that end at once the other one may have merged meanwhile.
            if (whole := _manifest(out)) is None:
                raise
    if sorted(whole.merged) != sorted(manifest.run_id for manifest in found if manifest is not None):
        raise _other_run(out, of)
    # A merge may have been killed before its report was whole; the last page is written last.
    if Folder(out).read(PAGES["ru"]) is None:
        write_report(out)
    say(f"all {of} shards are one run: {out}")
    return True


def _other_run(out: str, of: int) -> MergeError:
    return MergeError(f"{out} holds another run than that of these {of} shards: give another --out")


def _manifest(address: str) -> Manifest | None:
    content = Folder(address).read(MANIFEST)
    return None if content is None else Manifest.from_json(content, place=f"{address}/{MANIFEST}")
