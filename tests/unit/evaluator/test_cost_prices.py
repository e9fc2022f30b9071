"""The price table: read or refused by its file and field; a model that it does not know is never free."""

from pathlib import Path

import pytest

from memdock_evaluator.cost.bill import priced, told
from memdock_evaluator.cost.prices import PriceError, money, read_prices
from memdock_evaluator.results.manifest import CostLine, Price


def test_the_shipped_table_has_a_date_a_currency_and_prices() -> None:
    prices = read_prices()
    assert (prices.date, prices.currency) == ("2025-06-30", "USD")
    assert prices.of("gpt-4.1-mini") == prices.of("openai/gpt-4.1-mini") == Price(input=0.4, output=1.6)
    assert prices.of("gpt-4.1-minimal") is None


def test_prices_are_of_a_million_tokens() -> None:
    assert money(Price(input=2, output=8), 500_000, 250_000) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("date: 2025-01-01\nmodels: {}", "currency: Field required"),
        ("date: soon\ncurrency: EUR\nmodels: {}", "date: "),
        ("date: 2025-01-01\ncurrency: EUR\nmodels: {m: {input: 1}}", "models.m.output: Field required"),
        ("date: 2025-01-01\ncurrency: EUR\nmodels: {m: {input: -1, output: 1}}", "models.m.input: "),
        ("date: 2025-01-01\ncurrency: EUR\nmodels: {m: {input: .nan, output: 1}}", "models.m.input: "),
        ("date: 2025-01-01\ncurrency: EUR\nmodels: {m: {input: 1, output: 1, cached: 0}}", "models.m.cached: Extra"),
        ("date: [", "it is no YAML"),
    ],
)
def test_a_table_that_is_wrong_is_refused_by_its_field(written: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(written)
    with pytest.raises(PriceError, match=said) as refused:
        read_prices(path)
    assert str(path) in str(refused.value)
    with pytest.raises(PriceError, match="cannot be read"):
        read_prices(tmp_path / "none.yaml")


def test_a_model_without_a_price_is_listed_and_not_added() -> None:
    def line(purpose: str, model: str) -> CostLine:
        return CostLine(system="s", purpose=purpose, model=model, input_tokens=1_000_000, output_tokens=0)

    cost = priced([line("answer", "gpt-4o"), line("memory: embedding", "local-e5")], read_prices())
    assert [each.money for each in cost.lines] == [2.5, None]
    assert (cost.money, cost.unpriced, list(cost.prices)) == (2.5, ("local-e5",), ["gpt-4o"])
    assert told(cost) == [
        "cost: 2.5000 USD (answer 2.5000), by list prices of 2025-06-30",
        "not in it, for the price table does not know them: local-e5 (--prices FILE)",
    ]
    unknown = priced([line("memory: embedding", "local-e5")], read_prices())
    assert told(unknown) == ["cost unknown, for the price table does not know them: local-e5 (--prices FILE)"]
    assert told(priced([], read_prices())) == []
