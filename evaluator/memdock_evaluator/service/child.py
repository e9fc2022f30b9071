"""`memdock-eval` as the process of a carrier: the same command, which ends when the server that started it has ended.

`python -m memdock_evaluator.service.child PARENT WORD...`; the server does not set this up between fork and exec, since
other threads of its run meanwhile.
"""

import sys

from memdock_evaluator.cli import main
from memdock_evaluator.interrupting import end_with_parent

if __name__ == "__main__":
    parent = int(sys.argv.pop(1))
    end_with_parent(parent)
    main(prog_name="memdock-eval")
