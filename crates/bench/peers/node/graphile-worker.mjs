import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { serve } from './protocol.mjs'

const logger = new Logger(() => () => {})

await serve({
  name: 'graphile-worker',

  async seed({ database }, items) {
    const utils = await makeWorkerUtils({ connectionString: database, logger })
    await utils.migrate()
    for (const some of items) {
      await utils.addJobs(some.map(({ n, at }) => ({ identifier: 'noop', payload: { n }, runAt: at })))
    }
    await utils.release()
  },

  async start({ database, best }, call) {
    const worker = { connectionString: database, logger }
    if (best) {
      Object.assign(worker, {
        concurrentJobs: 24,
        maxPoolSize: 26,
        pollInterval: 20,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      })
    }
    await run({ preset: { worker }, noHandleSignals: true, taskList: { noop: ({ n }) => call(n) } })
  },
})
