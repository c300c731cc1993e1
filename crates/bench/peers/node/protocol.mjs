// The protocol between the bench and the program of a peer, as in ../protocol.rs.
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const SEEDED_AT_ONCE = 10_000

// Serves one piece of work: `peer` has `name`, `seed(work, items)` and `start(work, call)`.
export async function serve(peer) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const next = async () => (await lines.next()).value
  const work = JSON.parse(await next())
  const numbers = []
  const times = []
  const call = (n) => {
    numbers.push(n)
    times.push(performance.timeOrigin + performance.now())
    if (numbers.length === work.jobs) say({ event: 'called' })
  }
  await peer.seed(work, items(work))
  say({ event: 'ready', version: version(peer.name) })
  if ((await next()) === 'go') {
    await peer.start(work, call)
    await next()
  }
  writeFileSync(work.results, numbers.map((n, i) => `${n} ${Math.round(times[i] * 1000)}\n`).join(''))
  say({ event: 'written' })
  process.exit(0)
}

// Yields arrays of what to enqueue: the number of the job, and its time as a Date unless it is due at once.
function* items(work) {
  for (let from = 0; from < work.jobs; from += SEEDED_AT_ONCE) {
    const count = Math.min(SEEDED_AT_ONCE, work.jobs - from)
    yield Array.from({ length: count }, (_, i) => ({ n: from + i, at: due(work, from + i) }))
  }
}

function due(work, n) {
  if (work.kind === 'drain') return undefined
  return new Date(work.base_ms + Math.floor((work.spread_ms * n) / work.jobs))
}

// The package may not export its manifest, so the file is read where npm put it.
function version(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version
}

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}
