"""SQL within a column of a Spark Connect request, such as ``where("a > 3")``: only what is understood is accepted.

Text such as 'today' is the clock wherever Spark makes a time of it, and that it may do with every text that has no
column in it. So such words are refused, and so are functions without a column that could put one together. Not seen: a
function that was registered under the name of one that Spark has, and a name that is a variable of the session.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_NAMES = """
== = != <> < <= > >= <=> + - * / % & | ^ ~ ! and or not in between case when if ifnull nullif nvl nvl2 coalesce
isnull isnotnull isnan nanvl like ilike rlike regexp regexp_like contains startswith endswith abs acos acosh asin
asinh atan atan2 atanh bround cbrt ceil ceiling cos cosh cot csc degrees div e exp expm1 factorial floor greatest
hypot least ln log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sec sign signum sin
sinh sqrt tan tanh try_add try_divide try_multiply try_subtract width_bucket bit_count bit_get getbit shiftleft
shiftright shiftrightunsigned conv bin hex unhex ascii base64 bit_length btrim char char_length character_length chr
concat concat_ws decode encode elt find_in_set format_number format_string initcap instr lcase left length len
levenshtein locate lower lpad ltrim octet_length overlay position printf regexp_count regexp_extract regexp_instr
regexp_replace regexp_substr repeat replace reverse right rpad rtrim soundex split split_part substr substring
substring_index to_number translate trim ucase unbase64 upper crc32 hash md5 sha sha1 sha2 xxhash64 add_months
date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date
make_timestamp minute month monthname months_between next_day quarter second timestamp_micros timestamp_millis
timestamp_seconds to_date to_timestamp to_utc_timestamp trunc unix_date unix_micros unix_millis unix_seconds weekday
weekofyear year array array_contains array_distinct array_except array_intersect array_join array_max array_min
array_position array_remove array_repeat array_size array_sort array_union arrays_overlap cardinality element_at
exists explode explode_outer filter flatten forall get get_json_object map map_from_arrays map_keys map_values
named_struct posexplode sequence size slice sort_array struct transform bigint binary boolean cast date decimal
double float int smallint string timestamp tinyint try_cast varchar count count_if min max bool_and bool_or every
some any bit_and bit_or bit_xor
"""
_FUNCTIONS = frozenset(_NAMES.split())  # of their arguments alone; aggregates in any order of the rows
_UNCHANGED = """
== = != <> < <= > >= <=> + - * / % & | ^ ~ ! and or not in between case when if ifnull nullif nvl nvl2 coalesce
isnull isnotnull isnan nanvl like ilike rlike abs ceil ceiling degrees div e exp floor greatest least ln log log10
log2 mod negative pi pmod positive pow power radians round sqrt try_add try_divide try_multiply try_subtract
length make_date make_timestamp timestamp_micros timestamp_millis timestamp_seconds date_from_unix_date to_date
to_timestamp date_add date_sub datediff array map named_struct struct bigint binary boolean cast date decimal double
float int smallint string timestamp tinyint try_cast varchar count count_if min max any some every
"""
_CONSTANT = frozenset(_UNCHANGED.split())  # make no text of other texts
_TIMES = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user",
     "session_user", "current_catalog", "current_database", "current_schema"}
)  # fmt: skip  # need no brackets
_QUERIES = frozenset({"select", "from", "table", "values", "with", "over", "using", "collate"})
_SCRIPTS = frozenset({"map", "reduce"})  # unless they are called
_JOINING = "and or not in between like ilike rlike regexp when then else escape div"
_KEYWORDS = """
is null true false case end distinct asc desc nulls first last all any some exists both leading trailing interval
unknown bigint long int integer short byte tinyint smallint float real double decimal dec numeric string binary
boolean date time timestamp timestamp_ntz timestamp_ltz variant void array map struct char character varchar
"""
_BEFORE_TEXT = frozenset(_JOINING.split())  # other words and a text are a literal with a type
_BEFORE_COLUMN = _BEFORE_TEXT | {"case", "distinct"}
_WORDS = _BEFORE_TEXT | frozenset(_KEYWORDS.split())
_TOKEN = re.compile(
    r"\s+|(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<quoted>`(?:[^`]|``)*`)|(?P<word>[^\W\d]\w*)|(?P<number>\d\w*)"
    r"|(?P<sign>\|\||[-+*/%&|^~!=<>.,:()\[\]])"
)
_CLOCK = re.compile(r"[\s\x00-\x20]*((now|today|tomorrow|yesterday|epoch)(?![a-z])|t?\d{1,2}:)", re.IGNORECASE)
_COLLATION = re.compile(r"(?<![a-z])collat(e|ions?)(?![a-z])", re.IGNORECASE)


def is_clock(text: str) -> bool:
    """Whether Spark may read a time of the clock from a text; a time without a date is one of today.

    >>> is_clock(" Today CET"), is_clock("12:30"), is_clock("nowhere")
    (True, True, False)
    """
    return _CLOCK.match(text) is not None


def is_collated(text: str) -> bool:
    """Whether a type, or a schema, has text that is equal to other text: which of them is left depends on the order.

    >>> is_collated("string COLLATE UTF8_LCASE"), is_collated("collateral double")
    (True, False)
    """
    return _COLLATION.search(text) is not None


def is_time(name: str) -> bool:
    """Whether an attribute is the clock or the session, if no column has its name."""
    return _plain(name) in _TIMES


def function_problem(name: str, with_column: bool) -> str | None:
    """What is wrong with a function that is called, with a column somewhere in its arguments or without."""
    plain = _plain(name)
    if plain not in _FUNCTIONS:
        return f'the function "{plain}"'
    return None if with_column or plain in _CONSTANT else f'the function "{plain}" without a column'


def text_problem(text: str) -> str | None:
    """What is wrong with a text of SQL. Its grammar is not known here: which names, calls and texts are in it."""
    unread = f"the expression {text!r}"
    if "--" in text or "/*" in text or set("\\$").intersection(text):  # what they may hide has rules of its own
        return unread
    tokens = _tokens(text)
    if tokens is None:
        return unread
    sql = _Sql(tokens)
    if not all(map(sql.understood, range(len(tokens)))):
        return unread
    return next((found for place in range(len(tokens)) if (found := sql.call(place)) is not None), None)


def has_column(text: str) -> bool:
    """Whether there is a column in a text of SQL, as far as it is understood."""
    tokens = _tokens(text) or []
    return any(map(_Sql(tokens).is_column, range(len(tokens))))


def _plain(name: str) -> str:
    return name.strip('`"').lower()


class _Token(NamedTuple):
    kind: str
    text: str


_END = _Token("end", "")


def _tokens(text: str) -> list[_Token] | None:
    """The tokens without the blanks between them; nothing if there is something else."""
    place, found = 0, []
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return None
        place = match.end()
        if match.lastgroup is not None:
            found.append(_Token(match.lastgroup, match.group()))
    return found


@dataclass(frozen=True)
class _Sql:
    """The tokens of an expression."""

    tokens: list[_Token]

    def at(self, place: int) -> _Token:
        """One of them; beyond the first and the last an empty one."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else _END

    def understood(self, place: int) -> bool:
        """Whether a token may stand where it is."""
        token, after = self.at(place), self.at(place + 1)
        if token.kind == "text":
            inside = token.text[1:-1].replace(token.text[0] * 2, "")
            return not is_clock(inside) and after.kind != "text" and after.text != "("
        if token.kind in {"number", "quoted"}:
            return after.text != "(" and after.kind != "text" and not is_time(token.text)
        if token.text == "||":
            return self._ends_column(place - 1) or self.is_column(place + 1)
        return token.kind != "word" or self._word(place)

    def _word(self, place: int) -> bool:
        word, after = self.at(place).text.lower(), self.at(place + 1)
        if word in _TIMES or word in _QUERIES or (after.kind == "text" and word not in _BEFORE_TEXT):
            return False  # date '...' and r'...' too
        if after.text == "(":
            return self.at(place - 1).text != "."
        return word not in _SCRIPTS

    def is_column(self, place: int) -> bool:
        """Whether a name must be that of a column: it is no type, no alias and no field of something else."""
        token, before = self.at(place), self.at(place - 1)
        named = token.kind == "quoted" or (token.kind == "word" and token.text.lower() not in _WORDS)
        if not named or self.at(place + 1).text == "(":
            return False
        if before.kind == "sign":
            return before.text not in {")", "]", ".", ":"}
        return before is _END or (before.kind == "word" and before.text.lower() in _BEFORE_COLUMN)

    def _ends_column(self, place: int) -> bool:
        while self.at(place).kind in {"word", "quoted"} and self.at(place - 1).text == ".":
            place -= 2
        return self.is_column(place)

    def call(self, place: int) -> str | None:
        """What is wrong with the function that is called here, if one is."""
        if self.at(place).kind != "word" or self.at(place + 1).text != "(":
            return None
        inside = range(place + 2, self._closing(place + 1))
        return function_problem(self.at(place).text, any(map(self.is_column, inside)))

    def _closing(self, place: int) -> int:
        depth = 0
        for end in range(place, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[end].text, 0)
            if not depth:
                return end
        return place  # never closed: nothing is inside
