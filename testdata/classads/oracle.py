"""Evaluates ClassAd expressions with HTCondor's own library.

The first line is a JSON object of variables for the environment, by which
HTCondor is configured. It may run on another machine, where those of the caller
do not count. Then reads a JSON object a line: expr, and optionally the ads my and target, in
either syntax; or old, an ad in the old syntax; or long, ads that condor_q -long
shall print; or json, one in JSON. Writes a JSON object a line:
the expression as HTCondor prints it and its value, or with flatten the names it
refers to and what is left of it when flattened; or the ad as it prints it in
the old syntax and as JSON; or what condor_q prints; or the ad in the new syntax;
or that it cannot be parsed. The first line is the version.
"""

import json
import os
import subprocess
import sys
import tempfile

os.environ.update(json.loads(sys.stdin.readline()))

import classad2
import htcondor2  # registers the functions that daemons have

ads = {}


def ad(text):
    if text not in ads:
        new = text.startswith("[")
        ads[text] = classad2.ClassAd(text) if new else classad2.parseOne(text, classad2.ParserType.Old)
    return ads[text]


def references(find, expr):
    try:
        return ",".join(sorted(find(expr), key=str.lower))
    except Exception:
        return "error"


def residue(expr, my):
    try:
        left = my.flatten(expr)
        left = repr(left) if isinstance(left, classad2.ExprTree) else "value"
    except ValueError:
        left = "error"
    refs = [references(my.externalRefs, expr), references(my.internalRefs, expr)]
    return {"parse": True, "print": " ".join(refs), "value": left}


def long(text):
    with tempfile.NamedTemporaryFile("w", newline="\n") as ads:
        ads.write(text)
        ads.flush()
        env = {"CONDOR_CONFIG": "ONLY_ENV", **os.environ}
        out = subprocess.run(["condor_q", "-jobads", ads.name, "-long"], env=env, capture_output=True, check=True)
    return {"parse": True, "print": out.stdout.decode()}


def from_json(text):
    try:
        ad = classad2.parseOne(text, classad2.ParserType.JSON)
    except Exception:
        return {"parse": False}
    if not len(ad) and text != "{}":
        return {"parse": False}
    return {"parse": True, "print": repr(ad)}


def answer(query):
    if "long" in query:
        return long(query["long"])
    if "json" in query:
        return from_json(query["json"])
    if "old" in query:
        parsed = classad2.parseOne(query["old"], classad2.ParserType.Old)
        # The parser ends at the first line it does not understand.
        complete = len(parsed) == query["old"].count("\n")
        return {"parse": complete, "print": parsed.printOld(), "value": parsed.printJson()}
    try:
        expr = classad2.ExprTree(query["expr"])
    except Exception:
        return {"parse": False}
    if query.get("flatten"):
        return residue(expr, ad(query.get("my", "[]")))
    target = ad(query["target"]) if query.get("target") else None
    printed = repr(expr)
    try:
        value = repr(expr.simplify(ad(query.get("my", "[]")), target))
    except classad2.ClassAdException:
        value = "error"  # the evaluation as a whole failed
    return {"parse": True, "print": printed, "value": value}


print("HTCondor", classad2.version(), flush=True)
for line in sys.stdin:
    try:
        out = answer(json.loads(line))
    except Exception as problem:
        out = {"problem": repr(problem)}
    print(json.dumps(out), flush=True)
