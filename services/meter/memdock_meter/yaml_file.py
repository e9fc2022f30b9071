"""Reads a YAML file of fields and values."""

from pathlib import Path
from typing import Any

import yaml

from memdock_meter.problems import ConfigError

# What PyYAML raises for a value that has not the form of its tag, such as a day that does not exist or `!!int x`.
_BAD_VALUE = (ValueError, LookupError, TypeError, AttributeError)


class _Loader(yaml.SafeLoader):
    """Refuses a name that is given twice, of which PyYAML keeps the last without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        names = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in names:
                    raise ConfigError(f"line {key.start_mark.line + 1}: {key.value} is given twice: keep one")
                names.add((key.tag, key.value))
        return node


def read_fields(path: Path) -> dict[Any, Any]:
    """The file's fields, none of an empty file. Raises `ConfigError` naming the file for what cannot be read."""
    try:
        content = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: it cannot be read") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: it is no YAML: {' '.join(str(error).split())}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: its brackets stand too deep in each other") from error
    except _BAD_VALUE as error:
        raise ConfigError(f"{path}: it holds a value that YAML cannot read, put it in quotes: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: it must be a mapping of fields to values, not a {type(content).__name__}")
    return content
