// Internal to lib/api: reading and writing JSON text without building a document.
#pragma once

#include <string>
#include <string_view>

#include "lib/api/wire.h"

namespace keelson::api {

// Deep enough for any schema a person wrote, shallow enough for a thread's stack.
constexpr int kMaxJsonDepth = 500;

// A cursor over JSON text. Functions return false at the first error, which error() describes in the words
// of Go's encoding/json; the cursor is then of no more use.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text)
      : begin_(text.data()), p_(text.data()), end_(text.data() + text.size()) {}

  // The next character after white space, 0 at the end.
  char Peek() {
    if (p_<end_&& static_cast<uint8_t>(*p_)> ' ') return *p_;
    return PeekSlow();
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++p_;
    return true;
  }
  const char* position() const { return p_; }
  std::string_view Since(const char* from) const { return {from, static_cast<size_t>(p_ - from)}; }

  // A string; `text` is valid until the next call and until the input goes. Invalid UTF-8 reads as U+FFFD.
  bool String(std::string_view& text);
  bool Number(std::string_view& text);
  bool Literal(std::string_view word);  // true, false, null; the first letter has been seen
  bool Skip(int depth);                 // any value
  // Any value, appended to `out` without white space and otherwise as it is.
  bool Copy(Sink& out, int depth);
  // After an element: true if there is another one, `more` tells; false at an error.
  bool Next(char close, std::string_view context, bool& more);
  // A member's name and the colon; `name` as String().
  bool Name(std::string_view& name);
  bool AtEnd() { return Peek() == 0 && p_ == end_; }

  // Complains about the character at the cursor.
  bool Unexpected(std::string_view context);
  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  bool TooDeep() { return Fail("exceeded max depth"); }
  const std::string& error() const { return error_; }

 private:
  char PeekSlow();
  bool StringSlow(const char* start, std::string_view& text);
  bool Escape();

  const char *begin_, *p_, *end_;
  Sink* copy_ = nullptr;  // where Copy() writes, and from where it has not been written yet
  const char* mark_ = nullptr;
  std::string scratch_, error_;
};

bool IsUtf8(std::string_view text);

// A JSON string with quotes, escaped as Go's encoder does: <, >, & and the line separators too.
void AppendQuoted(std::string_view text, Sink& out);
// A JSON value without white space and with those escapes; `null` when it is no valid JSON.
void AppendCompact(std::string_view json, Sink& out);
void AppendInt(int64_t value, Sink& out);
void AppendDouble(double value, Sink& out);

}  // namespace keelson::api
