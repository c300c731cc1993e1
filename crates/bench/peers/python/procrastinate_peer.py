import asyncio
import logging
import threading
from importlib.metadata import version

from procrastinate import App, PsycopgConnector

from protocol import Witness, Work, ready

SEEDED_AT_ONCE = 1000

logging.disable(logging.ERROR)
work = Work()
witness = Witness(work)
app = App(connector=PsycopgConnector(conninfo=work.database))


@app.task(name="noop")
async def noop(n):
    witness.call(n)


async def seed():
    await app.schema_manager.apply_schema_async()
    if work.kind == "drain" or work.spread_ms == 0:
        for first in range(0, work.jobs, SEEDED_AT_ONCE):
            numbers = range(first, min(first + SEEDED_AT_ONCE, work.jobs))
            await noop.configure(schedule_at=work.due(first)).batch_defer_async(*[{"n": n} for n in numbers])
    else:
        for n in range(work.jobs):
            await noop.configure(schedule_at=work.due(n)).defer_async(n=n)


async def main():
    async with app.open_async():
        await seed()
        ready(version("procrastinate"))
        threading.Thread(target=witness.finish, daemon=True).start()
        options = {"concurrency": 50, "fetch_job_polling_interval": 0.02} if work.best else {}
        await app.run_worker_async(install_signal_handlers=False, **options)


asyncio.run(main())
