// Finds memories by the words that they share with a query.

/**
 * The memories that share a word with the query, best first, as {memory, score}. A shared word counts log(1 + n / df),
 * n memories of which df hold it (inverse document frequency: Spärck Jones, 1972), so that a rare word counts most.
 */
export function rank(query, memories) {
  const held = memories.map((memory) => ({ memory, words: wordsOf(memory.text) }));
  const weights = [...wordsOf(query)].map((word) => {
    const df = held.filter(({ words }) => words.has(word)).length;
    return [word, df ? Math.log(1 + held.length / df) : 0];
  });
  const scored = held.map(({ memory, words }) => ({
    memory,
    score: weights.reduce((sum, [word, weight]) => sum + (words.has(word) ? weight : 0), 0),
  }));
  return scored.filter(({ score }) => score > 0).sort((one, other) => other.score - one.score);
}

function wordsOf(text) {
  return new Set(
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu),
  );
}
