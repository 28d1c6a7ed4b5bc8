// The clauses of string.format(): %s, %.2f. Calls read them when they run, and the checker when the format is a literal.
#pragma once

#include <string_view>

#include "lib/base/error.h"

namespace keelson::cel {

struct FormatClause {
  char verb = 0;  // one of s, d, f, e, b, x, X, o
  int precision = 0;
};

// What each clause takes, as upstream's errors say it; also for values whose type is known too late.
std::string_view TakenByClause(char verb);

// Takes a clause from the start of `rest`, which is what follows the percent sign. kBadRequest in upstream's words:
// "unexpected end of string", "could not parse formatting clause: unrecognized formatting clause "q"".
Result<FormatClause> TakeFormatClause(std::string_view& rest);

}  // namespace keelson::cel
