"""Whether the API was under fire, by what the server itself has counted.

    tally.py DOCUMENT BASE REQUESTS_MIN

Every operation of the document was called and has succeeded, and nothing went wrong inside.
"""

import json
import re
import sys
from collections import Counter
from urllib.request import urlopen

# Nobody can make a parked message through the API: only what stands in the stream and is not the
# gate's becomes one. The tests of the contract and of the acceptance settle some.
NEVER_SUCCEED = {"replayParkedMessage", "discardParkedMessage"}
COUNTED = re.compile(
    r'^seckill_http_requests_total\{route="(.*)",method="(.*)",status="(.*)"\} (\d+)$', re.M
)


def main(document: str, base: str, least: str) -> None:
    with urlopen(f"{base}/metrics") as answer:
        counted = COUNTED.findall(answer.read().decode())
    called, succeeded, broken = Counter(), Counter(), []
    for route, method, status, count in counted:
        called[route, method] += int(count)
        if status.startswith("2"):
            succeeded[route, method] += int(count)
        if status == "other" or status.startswith("5"):
            broken.append(f"{count} times {status}: {method} {route}")
    with open(document, encoding="utf-8") as file:
        paths = json.load(file)["paths"]
    operations = {
        operation["operationId"]: (route, method.upper())
        for route, methods in paths.items()
        for method, operation in methods.items()
        if "operationId" in operation
    }
    wrong = broken + [f"never called: {name}" for name, it in operations.items() if not called[it]]
    wrong += [
        f"never succeeded: {name}, called {called[it]} times"
        for name, it in operations.items()
        if not succeeded[it] and name not in NEVER_SUCCEED
    ]
    total = sum(called.values())
    if total < int(least):
        wrong.append(f"{total} requests, and not {least}")
    for line in wrong:
        print(f"fire: {line}", file=sys.stderr)
    happy = sum(1 for it in operations.values() if succeeded[it])
    print(f'{{"requests":{total},"operations":{len(operations)},"succeeded":{happy}}}')
    sys.exit(1 if wrong else 0)


main(*sys.argv[1:])
