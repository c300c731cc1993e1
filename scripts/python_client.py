"""Uses the generated client: `EVERBELL_TOKEN=… python_client.py ADDRESS`."""

import builtins
import importlib
import keyword
import os
import re
import sys
import time
from pathlib import Path

import everbell_client
import httpx
from everbell_client.api.cron import preview_cron
from everbell_client.api.events import stream_events
from everbell_client.api.jobs import create_job, get_job, list_jobs, pause_job, resume_job, run_job_now
from everbell_client.api.orgs import import_orgs
from everbell_client.api.runs import get_run, list_runs
from everbell_client.models import (
    CronPreviewRequest,
    Imported,
    Job,
    JobCreate,
    JobPage,
    JobStatus,
    Paused,
    PauseRequest,
    PoliciesInput,
    Preview,
    Problem,
    ProblemCode,
    Resumed,
    ResumeRequest,
    RunNow,
    RunNowRequest,
    RunPage,
    RunStatus,
)
from everbell_client.types import File


def expect(value, kind):
    """Returns a response that must be of this type."""
    assert isinstance(value, kind), f"expected {kind.__name__}, got {value}"
    return value


def module_name(tag):
    """The folder of a tag: the generator keeps clear of Python's own names, such as `next`."""
    return f"{tag}_" if keyword.iskeyword(tag) or hasattr(builtins, tag) else tag


def check_modules(client, document):
    """Every operation has a module, which reads the example of its response without losing a member."""
    modules = 0
    for operations in document["paths"].values():
        for operation in operations.values():
            words = re.findall("[A-Z]?[a-z]+", operation["operationId"])
            name = "_".join(words).lower()
            module = importlib.import_module(f"everbell_client.api.{module_name(operation['tags'][0])}.{name}")
            modules += 1
            for status, response in operation["responses"].items():
                for media, content in response.get("content", {}).items():
                    if media == "application/json" and "example" in content:
                        sent = httpx.Response(int(status), json=content["example"])
                        read = module._parse_response(client=client, response=sent)
                        check_example(operation["operationId"], read, content["example"])
    folder = Path(everbell_client.__file__).parent / "api"
    files = [path for path in folder.glob("*/*.py") if path.name != "__init__.py"]
    assert len(files) == modules, f"{modules} operations, {len(files)} modules"
    return modules


def check_example(operation, read, example):
    written = [item.to_dict() for item in read] if isinstance(read, list) else read.to_dict()
    assert without_zeros(written) == without_zeros(example), f"{operation}: {written} is not {example}"


def without_zeros(value):
    """Times are equal with any number of decimals and with either name of UTC."""
    if isinstance(value, dict):
        return {name: without_zeros(member) for name, member in value.items()}
    if isinstance(value, list):
        return [without_zeros(item) for item in value]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$", value):
        value = value.replace("+00:00", "Z")
        return re.sub(r"(\.\d*?)0*Z$", lambda found: found[1].rstrip(".") + "Z", value)
    return value


def use(client):
    job = JobCreate(
        job_key="client-test",
        target="print",
        cron_expression="0 8 * * 1-5",
        timezone="Europe/Berlin",
        policies=PoliciesInput(timeout="30s"),
    )
    created = expect(create_job.sync(client=client, body=job), Job)
    key = "key:client-test"
    read = expect(get_job.sync(key, client=client), Job)
    assert read.id == created.id and read.status == JobStatus.ACTIVE and read.policies.timeout == "PT30S"
    page = expect(list_jobs.sync(client=client, status=[JobStatus.ACTIVE, JobStatus.PAUSED]), JobPage)
    assert created.id in [item.id for item in page.items]

    # The stream of events has no end, so it is read line by line.
    request = stream_events._get_kwargs(types=["run.succeeded"])
    with client.get_httpx_client().stream(**request, timeout=20) as events:
        lines = events.iter_lines()
        next(lines)
        started = expect(run_job_now.sync(key, client=client, body=RunNowRequest(note="a test")), RunNow)
        assert any(line.startswith("data: ") and started.run.id in line for line in lines)
    deadline = time.monotonic() + 20
    while (run := get_run.sync(started.run.id, client=client)).status != RunStatus.SUCCEEDED:
        assert time.monotonic() < deadline, f"the run is {run.status}"
        time.sleep(0.1)
    runs = expect(list_runs.sync(client=client, job_key="client-test"), RunPage)
    assert [item.id for item in runs.items] == [started.run.id]

    paused = expect(pause_job.sync(key, client=client, body=PauseRequest(reason="a test")), Paused)
    assert paused.status == JobStatus.PAUSED and paused.pause_reason == "a test"
    resumed = expect(resume_job.sync(key, client=client, body=ResumeRequest()), Resumed)
    assert resumed.status == JobStatus.ACTIVE and resumed.resumed.missed_slots == 0

    request = CronPreviewRequest(cron_expression="@daily", count=3)
    preview = expect(preview_cron.sync(client=client, body=request), Preview)
    assert len(preview.next_) == 3 and preview.description == "Every day at 00:00"

    orgs = File(payload=b'{"id": "acme", "timezone": "Asia/Tokyo"}\n{"id": "initech", "timezone": "UTC"}\n')
    assert expect(import_orgs.sync(client=client, body=orgs), Imported).created == 2

    missing = expect(get_job.sync("key:no-such-job", client=client), Problem)
    assert (missing.status, missing.code, missing.name) == (404, ProblemCode.NOTFOUND, "no-such-job")


def main():
    address = sys.argv[1]
    client = everbell_client.AuthenticatedClient(base_url=address, token=os.environ["EVERBELL_TOKEN"])
    document = client.get_httpx_client().get("/openapi.json").json()
    modules = check_modules(client, document)
    use(client)
    print(f"the generated client has {modules} operations, and works")


main()
