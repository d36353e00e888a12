"""`oversmoothing check`: confirm or refuse a certificate, by computation."""

from typing import Annotated

from typer import Argument

from oversmoothing.theory.support.errors import InputError


def check(
    certificate: Annotated[str, Argument(metavar="CERT.json", help="As `certify` writes it.")],
) -> int:
    """Recompute a certificate by other means.

    Exit status 0: accepted; 1: refused.
    """
    from oversmoothing.theory.checker.check import check_certificate
    from oversmoothing.theory.checker.reading import NotACertificate
    from oversmoothing.theory.support.files import read_text

    try:
        found = check_certificate(read_text(certificate))
    except NotACertificate as error:
        raise InputError(
            f"'{certificate}' is no certificate: {error} (the file of an enclosure is checked by "
            "`oversmoothing enclose MODEL --check`)"
        ) from error
    print(f"{'accepted' if found.accepted else 'REFUSED'}: {found.words}")
    return 0 if found.accepted else 1
