"""A plugin of pytest: writes which cases there are and how each ended, as it happens, so that a test that has to be killed
still says how far it came."""

import json
import os

OUT = open(os.environ["OUTCOMES"], "a", buffering=1)


def say(**line):
    OUT.write(json.dumps(line) + "\n")


def pytest_collection_modifyitems(items):
    for item in items:
        say(case=item.nodeid, when="collect", outcome="", why="")


def reason(report):
    if not report.longrepr:
        return ""
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)


def pytest_collectreport(report):
    if report.outcome != "passed":
        say(case=report.nodeid, when="collect", outcome=report.outcome, why=reason(report)[:500])


def pytest_runtest_logreport(report):
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "skipped"  # expected to fail, whatever happened
    say(case=report.nodeid, when=report.when, outcome=outcome, why=(getattr(report, "wasxfail", "") or reason(report))[:500])
