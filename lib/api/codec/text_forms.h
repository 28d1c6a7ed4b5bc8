// Internal to lib/api: text forms of times and binary data in JSON, as Go reads and writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/api/duration.h"
#include "lib/api/wire.h"
#include "lib/base/error.h"

namespace keelson::api {

struct Instant {
  int64_t seconds = 0;
  int32_t nanos = 0;
};

// Appends 2026-01-01T00:00:00Z, with six fractional digits if `micro`.
void AppendTime(Instant time, bool micro, Sink& out);
// Parses RFC 3339 with any offset; `micro` requires six fractional digits. kBadRequest, in the words of
// Go's time.Parse.
Result<Instant> ParseTime(std::string_view text, bool micro);
// Go's zero time is year 1 in UTC.
bool IsZeroTime(Instant time);
// Only times with such a year can be written.
bool HasFourDigitYear(int64_t seconds);

void AppendBase64(std::string_view bytes, Sink& out);
// Accepts the standard alphabet with padding; ignores line breaks.
Result<> DecodeBase64(std::string_view text, Sink& out);

}  // namespace keelson::api
