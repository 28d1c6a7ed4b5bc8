// Internal to lib/api: reads and writes JSON text without building a document.
#pragma once

#include <string>
#include <string_view>

#include "lib/api/wire.h"

namespace keelson::api {

// Deep enough for any schema that a person writes, shallow enough for a thread's stack.
constexpr int kMaxJsonDepth = 500;

// A cursor over JSON text. Functions return false at the first error; error() describes it in the words of
// Go's encoding/json. After an error the reader is unusable.
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

  // Reads a string. `text` is valid until the next call, at most as long as the input. Invalid UTF-8 reads
  // as U+FFFD.
  bool String(std::string_view& text);
  bool Number(std::string_view& text);
  bool Literal(std::string_view word);  // true, false, null; the caller has seen the first letter
  bool Skip(int depth);                 // any value
  // Copies any value to `out`, unchanged but for white space, which is removed.
  bool Copy(Sink& out, int depth);
  // After an element: `more` says whether another one follows. False at an error.
  bool Next(char close, std::string_view context, bool& more);
  // Reads a member's name and the colon. `name` is valid as in String().
  bool Name(std::string_view& name);
  bool AtEnd() { return Peek() == 0 && p_ == end_; }

  // Sets the error about the character at the cursor; returns false.
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
  Sink* copy_ = nullptr;  // target of Copy()
  // Start of the text that Copy() has not written yet.
  const char* mark_ = nullptr;
  std::string scratch_, error_;
};

bool IsUtf8(std::string_view text);
// U+FFFD stands for each byte that belongs to no UTF-8 sequence.
std::string ReplaceInvalidUtf8(std::string_view text);

// Appends a JSON string with quotes, escaped like Go's encoder: <, >, & and the line separators too.
void AppendQuoted(std::string_view text, Sink& out);
// Appends a JSON value without white space and with the same escapes; `null` when it is not valid JSON.
void AppendCompact(std::string_view json, Sink& out);
void AppendInt(int64_t value, Sink& out);
void AppendDouble(double value, Sink& out);

}  // namespace keelson::api
