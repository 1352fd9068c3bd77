"""Test results as JUnit XML, which CI servers show."""

import re
from xml.etree import ElementTree

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold. Names of functions and tags may have any."""


class Document:
    """Suites of test cases; a case gets a failure, an error, a reason why it is skipped, or an output."""

    def __init__(self, name: str) -> None:
        self._root = ElementTree.Element("testsuites", name=name)

    def suite(self, title: str) -> ElementTree.Element:
        return ElementTree.SubElement(self._root, "testsuite", name=_clean(title))

    def text(self) -> str:
        for suite in self._root:
            for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
                suite.set(attribute, str(sum(case.find(kind) is not None for case in suite)))
            suite.set("tests", str(len(suite)))
        ElementTree.indent(self._root)
        return ElementTree.tostring(self._root, encoding="unicode", xml_declaration=True) + "\n"


def case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=_clean(name))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def judged(suite: ElementTree.Element, name: str, passed: bool | None, words: str) -> None:
    """A case of a gate, for which None is that it could not be judged."""
    one = case(suite, name)
    words = _clean(words)
    if passed:
        ElementTree.SubElement(one, "system-out").text = words
    else:
        ElementTree.SubElement(one, "error" if passed is None else "failure", message=words)
