"""`oversmoothing check`: confirm or refuse a certificate, by computation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from oversmoothing.theory.checker import NotACertificate, check_certificate
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `check`."""
    parser.add_argument("certificate", metavar="CERT.json")


def run(arguments: Namespace) -> int:
    """Run `check`: 0 accepted, 1 refused."""
    try:
        found = check_certificate(read_text(arguments.certificate))
    except NotACertificate as error:
        raise InputError(f"'{arguments.certificate}' is no certificate: {error}") from error
    print(f"{'accepted' if found.accepted else 'REFUSED'}: {found.words}")
    return 0 if found.accepted else 1
