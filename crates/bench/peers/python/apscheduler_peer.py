import logging
from datetime import datetime, timezone
from importlib.metadata import version

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from protocol import Witness, Work, ready

# A misfire is a warning for each job, and would be what is measured.
logging.disable(logging.ERROR)
work = Work()
witness = Witness(work)


def noop(n):
    witness.call(n)


url = work.database.replace("postgres://", "postgresql+psycopg://", 1)
scheduler = BackgroundScheduler(
    jobstores={"default": SQLAlchemyJobStore(url=url)},
    executors={"default": ThreadPoolExecutor(50 if work.best else 10)},
    # With the default of one second what is due for longer would be skipped.
    job_defaults={"misfire_grace_time": None},
    timezone=timezone.utc,
)
scheduler.start(paused=True)
for number in range(work.jobs):
    at = work.due(number) or datetime.now(timezone.utc)
    scheduler.add_job(noop, "date", run_date=at, args=[number], id=str(number))
ready(version("apscheduler"))
scheduler.resume()
witness.finish()
