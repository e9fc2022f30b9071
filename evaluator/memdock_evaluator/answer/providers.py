"""What the models of a run share: one limit for each provider, the budget, the cache, and who hears of silence."""

from dataclasses import dataclass, field

from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.limiter import Limiter
from memdock_evaluator.answer.reply_cache import ReplyCache
from memdock_evaluator.cost.budget import Budget
from memdock_evaluator.waiting import Say, unheard


@dataclass(slots=True, kw_only=True)
class Providers:
    """`say` is told where an answer is long in coming. `budget`: set once it is known what was spent before."""

    say: Say = unheard
    cache: ReplyCache | None = None
    budget: Budget | None = None
    run_id: str = ""
    """Whose bill the replies are on; "" before that is known, and where there is no bill."""
    paid: set[str] = field(default_factory=set)
    """The cache's keys, in hexadecimal digits, of the replies that are on that bill."""
    _limiters: dict[tuple[str, str], Limiter] = field(default_factory=dict)

    def limiter(self, endpoint: ModelEndpoint) -> Limiter:
        """That of the endpoint's host and key: what answers and what judges there is one customer."""
        limiter = self._limiters.setdefault((endpoint.host, endpoint.key), Limiter(endpoint.concurrency))
        limiter.most = max(limiter.most, endpoint.concurrency)
        return limiter
