"""Pictures that are shown: an SVG file is a page of its own, which could run scripts.

A results folder may come from anywhere. What a plot needs is let through, name by name; the rest
(scripts, links, styles and pictures from elsewhere, anything that reacts) is left out.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"}
_PARTS = {"svg", "g", "defs", "style", "title", "desc", "use", "symbol", "image", "stop"}
_PAINT = {"clipPath", "mask", "pattern", "marker", "linearGradient", "radialGradient"}
_HERE = re.compile(r"#[\w.:-]+")
_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")
_FROM_ELSEWHERE = re.compile(
    r"[\\@]|url\((?!\s*['\"]?#)|image-set|expression|javascript", re.IGNORECASE
)


def harmless_svg(data: bytes) -> bytes:
    """The picture without all that a plot does not need; ValueError where it is none."""
    text = data.decode("utf-8")
    if "<!ENTITY" in text:
        raise ValueError("it declares entities")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    if root.tag != f"{{{_SVG}}}svg":
        raise ValueError("it is no SVG picture")
    _clean(root)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _HREF[1:].partition("}")[0])
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _clean(root: ElementTree.Element) -> None:
    waiting = [root]  # not by calls: a hostile picture may be deep
    while waiting:
        element = waiting.pop()
        for name, value in list(element.attrib.items()):
            if not _is_harmless(name, value):
                del element.attrib[name]
        for child in list(element):
            namespace, _, name = str(child.tag).rpartition("}")
            styled = name == "style" and _FROM_ELSEWHERE.search("".join(child.itertext()))
            if namespace != "{" + _SVG or name not in _SHAPES | _PARTS | _PAINT or styled:
                element.remove(child)
            else:
                waiting.append(child)


def _is_harmless(name: str, value: str) -> bool:
    if name in ("href", _HREF):
        return bool(_HERE.fullmatch(value) or _PICTURE.fullmatch(value))
    if name.startswith("{") or name.lower().startswith("on"):
        return False
    return not _FROM_ELSEWHERE.search(value)
