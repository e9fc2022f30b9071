// What the page carries in gzip: an index of all rows, unpacked as it opens, and a part a dialogue, unpacked when one of
// its rows is opened.
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

async function unpackedIndex() {
  const { questions, rows, texts } = await unpacked("explorer-index");
  const several = (place) => rows.some((row) => row[place] > 0);
  return {
    repeats: { repeat: several(2), ingest: several(5), judging: several(6) },
    ...JSON.parse(document.getElementById("explorer-names").textContent),
    texts,
    parts: new Map(),
    rows: rows.map(([system, question, repeat, result, answer, ingest, judging]) => ({ ...questions[question], system, repeat, result, answer, ingest, judging })),
  };
}

// Once for all rows of a dialogue, however many are opened.
function loadDetails(data, { part }) {
  if (!data.parts.has(part)) {
    data.parts.set(part, unpacked(`explorer-part-${part}`).then((found) => {
      found.texts.forEach((text, place) => { data.texts[found.start + place] = text; });
      for (const [place, { shared, memories, ...own }] of found.rows) {
        Object.assign(data.rows[place], found.questions[shared], own, {
          memories: memories.map(([memory, score, hit], before) => ({ ...found.memories[memory], rank: before + 1, score, hit: found.hits[hit] })),
        });
      }
    }));
  }
  return data.parts.get(part);
}
