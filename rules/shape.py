"""Where and against what a msgspec validation failed: full paths, keys and choices. Pure; only errors need it.

msgspec names the keys of structs in its paths and writes `[...]` for a key of a free table.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import inspect

from gsum.rules.locate import Path, Step

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+|\.\.\.)\]")


def full_path(data: object, kind: type[object], error: str, raw: str) -> Path:
    """Return the full path of an error that msgspec placed at `raw`; free keys are found by elimination."""
    path: Path = ()
    for name, index in _STEP.findall(raw):
        if index != "...":
            path = (*path, int(index) if index else name)
            continue
        table = _get(data, path)
        keys = [str(key) for key in table] if isinstance(table, dict) else []
        guilty = next((key for key in keys if _error(_keep(data, path, key), kind) == error), None)
        if guilty is None:
            return path
        data = _keep(data, path, guilty)
        path = (*path, guilty)
    return path


def field_names(kind: type[object], data: object, path: Path) -> list[str]:
    """Return the keys that the table at `path` may have."""
    structs = [admitted for admitted in _types(kind, data, path) if isinstance(admitted, inspect.StructType)]
    names = [field.encode_name for struct in structs for field in struct.fields]
    return names + [struct.tag_field for struct in structs if struct.tag_field]


def is_table(kind: type[object], data: object, path: Path) -> bool:
    """Whether what may stand at `path` is a table, not a value: missing, it is added as a section."""
    types = _types(kind, data, path)
    return bool(types) and all(isinstance(admitted, inspect.StructType | inspect.DictType) for admitted in types)


def choices(kind: type[object], data: object, path: Path) -> list[str]:
    """Return the values that an enumeration or a tag at `path` may have."""
    types = _types(kind, data, path)
    listed = [
        str(member.value) for admitted in types if isinstance(admitted, inspect.EnumType) for member in admitted.cls
    ]
    listed += [
        str(value) for admitted in types if isinstance(admitted, inspect.LiteralType) for value in admitted.values
    ]
    if listed or not path:
        return listed
    structs = [admitted for admitted in _types(kind, data, path[:-1]) if isinstance(admitted, inspect.StructType)]
    return [str(struct.tag) for struct in structs if struct.tag_field == path[-1]]


def _error(data: object, kind: type[object]) -> str | None:
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def _step(data: object, step: Step) -> object:
    if isinstance(data, dict):
        return data.get(step)
    return data[step] if isinstance(data, list) and isinstance(step, int) and step < len(data) else None


def _get(data: object, path: Path) -> object:
    for step in path:
        data = _step(data, step)
    return data


def _keep(data: object, path: Path, key: str) -> object:
    """Return a copy of the data in which the table at `path` holds only `key`."""
    if not path:
        return {key: _step(data, key)}
    below = _keep(_step(data, path[0]), path[1:], key)
    if isinstance(data, dict):
        return data | {path[0]: below}
    return [below if number == path[0] else item for number, item in enumerate(data if isinstance(data, list) else [])]


def _types(kind: type[object], data: object, path: Path) -> list[inspect.Type]:
    """Return the types admitted at `path`, unions taken apart and narrowed by the tags in the data."""
    types = _narrow([inspect.type_info(kind)], data)
    for step in path:
        data = _step(data, step)
        found: list[inspect.Type] = []
        for admitted in types:
            if isinstance(admitted, inspect.StructType):
                found += [field.type for field in admitted.fields if field.encode_name == step]
            elif isinstance(admitted, inspect.DictType):
                found.append(admitted.value_type)
            elif isinstance(admitted, inspect.VarTupleType):
                found.append(admitted.item_type)
        types = _narrow(found, data)
    return types


def _narrow(types: list[inspect.Type], data: object) -> list[inspect.Type]:
    flat: list[inspect.Type] = []
    for admitted in types:
        flat += admitted.types if isinstance(admitted, inspect.UnionType) else [admitted]
    if not isinstance(data, dict):
        return flat
    tagged: list[inspect.Type] = []
    for admitted in flat:
        if (
            isinstance(admitted, inspect.StructType)
            and admitted.tag_field
            and data.get(admitted.tag_field) == admitted.tag
        ):
            tagged.append(admitted)
    return tagged or flat
