#!/usr/bin/env python3
"""A file transfer plugin that gets and puts page://HOST/PATH over HTTP."""

import os
import sys
import time
import urllib.error
import urllib.request

import classad2

CAPABILITIES = {
    "PluginType": "FileTransfer",
    "PluginVersion": "1.0",
    "MultipleFileSupport": True,
    "ProtocolVersion": 2,
    "SupportedMethods": "page",
}


def transfer(request, upload):
    """Carries out one request and returns what is to be said of it."""
    url, name = request["Url"], request["LocalFileName"]
    result = {
        "TransferUrl": url,
        "TransferFileName": name,
        "TransferProtocol": "page",
        "TransferType": "upload" if upload else "download",
        "TransferStartTime": int(time.time()),
        "TransferSuccess": False,
    }
    began = time.monotonic()
    address = "http" + url[len("page"):]
    try:
        if upload:
            with open(name, "rb") as f:
                data = f.read()
            urllib.request.urlopen(urllib.request.Request(address, data, method="PUT")).close()
        else:
            with urllib.request.urlopen(address) as answer:
                data = answer.read()
            with open(name, "wb") as f:
                f.write(data)
        result.update(TransferSuccess=True, TransferFileBytes=len(data), TransferTotalBytes=len(data))
    except (OSError, urllib.error.URLError) as error:
        # What the job's owner reads.
        result.update(TransferError=str(error), TransferTotalBytes=0, TransferFileBytes=0)
        print(url, "failed:", error, file=sys.stderr)
    result.update(TransferEndTime=int(time.time()), ConnectionTimeSeconds=time.monotonic() - began)
    return result


def main(arguments):
    if arguments == ["-classad"]:
        print(classad2.ClassAd(CAPABILITIES).printOld())
        return 0
    upload = "-upload" in arguments
    named = [a for a in arguments if a != "-upload"]
    files = dict(zip(named[0::2], named[1::2]))
    with open(files["-infile"], encoding="utf-8") as f:
        requests = list(classad2.parseAds(f))
    results = [transfer(r, upload) for r in requests]
    with open(files["-outfile"], "w", encoding="utf-8") as f:
        f.writelines(str(classad2.ClassAd(r)) for r in results)
    print(len(results), "files as", os.getuid())
    return 0 if all(r["TransferSuccess"] for r in results) else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
