"""Tables in Parquet files that are not trusted: their size is known before they are unpacked.

A few bytes of Parquet can stand for any number of equal values, so what counts is the number of
values and the length of all texts, not the size of the file.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from featavg.errors import InputError
from featavg.files import DamagedError

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(
    source: IO[bytes], *, most_values: int, most_bytes: int
) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns and their values, as Python has them.

    Parameters
    ----------
    source : file
        The content.
    most_values : int
        How many values the table may have.
    most_bytes : int
        How many bytes its pages may have, unpacked, and how many characters its texts.

    Raises
    ------
    DamagedError
        If it is damaged, too large, or has columns of anything but numbers, texts and dates.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:  # not the extra for sweeps, which has much more
        raise InputError("Parquet needs PyArrow: pip install 'featavg[data]'.") from None
    try:
        about = pq.ParquetFile(source, pre_buffer=False)
        values = about.metadata.num_rows * max(1, about.metadata.num_columns)
        if values > most_values:
            raise DamagedError(f"it must have at most {most_values:,} values; got {values:,}")
        groups = (about.metadata.row_group(i) for i in range(about.metadata.num_row_groups))
        size = sum(group.total_byte_size for group in groups)
        if size > most_bytes:
            raise DamagedError(f"it must have at most {most_bytes:,} bytes, unpacked; got {size:,}")
        texts = [field.name for field in about.schema_arrow if _checked(field)]
        source.seek(0)
        file = pq.ParquetFile(source, pre_buffer=False, read_dictionary=texts)
        # without threads: one that still runs when Python ends aborts the process
        table = file.read(use_threads=False)
        _check_texts(table, most_bytes)
        return table.column_names, [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DamagedError(" ".join(str(error).split())[:200]) from None


def _checked(field: pa.Field) -> bool:
    """Return whether a column has texts; refuse one of lists or of other things with parts."""
    import pyarrow as pa

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_nested(kind):
        raise DamagedError(f"{field.name[:80]!r} must be a column of numbers or texts; got {kind}")
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def _check_texts(table: pa.Table, most: int) -> None:
    """Refuse texts that would be too long as they stand: a dictionary holds each only once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = 0
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            for chunk in column.chunks:
                lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
                total += pc.sum(lengths.cast(pa.int64())).as_py() or 0
    if total > most:
        raise DamagedError(f"its texts must have at most {most:,} characters; got {total:,}")
