import { PgBoss } from 'pg-boss'
import { serve } from './protocol.mjs'

let boss

await serve({
  name: 'pg-boss',

  async seed({ database }, items) {
    boss = new PgBoss(database)
    boss.on('error', (error) => process.stderr.write(`${error}\n`))
    await boss.start()
    await boss.createQueue('noop')
    for (const some of items) {
      await boss.insert('noop', some.map(({ n, at }) => ({ data: { n }, startAfter: at })))
    }
  },

  async start({ best }, call) {
    const options = best ? { batchSize: 1000, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true } : {}
    await boss.work('noop', options, async (jobs) => {
      for (const job of jobs) call(job.data.n)
    })
  },
})
