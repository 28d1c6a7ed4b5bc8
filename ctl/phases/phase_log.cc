#include "ctl/phases/phase_log.h"

#include <boost/json.hpp>

#include "lib/api/meta.h"

namespace keelson::ctl {

namespace json = boost::json;

PhaseLog::PhaseLog(std::ostream* lines, Clock& clock)
    : lines_(lines), clock_(clock), made_(clock.SteadyNow()), begun_(made_) {}

// To the millisecond.
double PhaseLog::Since(SteadyTime begin) const {
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.SteadyNow() - begin);
  return static_cast<double>(time.count()) / 1000;
}

double PhaseLog::seconds() const { return Since(made_); }

void PhaseLog::Begin(std::string_view phase) {
  phase_ = phase;
  begun_ = clock_.SteadyNow();
  Write("begin", "", nullptr);
}

void PhaseLog::End(const Result<>& done) {
  json::object entry{{"name", phase_}, {"seconds", Since(begun_)}};
  if (!done) entry["error"] = done.error().message();
  Write("end", done ? "" : "error", done ? json::value() : json::value(done.error().message()));
  phases_.push_back(std::move(entry));
  phase_.clear();
}

void PhaseLog::Message(const char* event, std::string_view text) {
  Write(event, "message", json::value(text));
}

void PhaseLog::Write(const char* event, std::string_view key, json::value value) {
  if (!lines_) return;
  json::object line{{"time", api::FormatTime(api::ToTime(clock_.Now()))}};
  if (!phase_.empty()) line["phase"] = phase_;
  line["event"] = event;
  if (std::string_view(event) == "end") line["seconds"] = Since(begun_);
  if (!key.empty()) line[key] = std::move(value);
  *lines_ << json::serialize(line) << "\n" << std::flush;
}

LineStream::LineStream(std::function<void(std::string_view)> take)
    : std::ostream(static_cast<std::streambuf*>(this)), take_(std::move(take)) {}

LineStream::~LineStream() {
  if (!line_.empty()) take_(line_);
}

int LineStream::overflow(int c) {
  using Traits = std::char_traits<char>;
  if (Traits::eq_int_type(c, Traits::eof())) return Traits::not_eof(c);
  const char one = Traits::to_char_type(c);
  Add({&one, 1});
  return c;
}

std::streamsize LineStream::xsputn(const char* text, std::streamsize size) {
  Add({text, static_cast<size_t>(size)});
  return size;
}

void LineStream::Add(std::string_view text) {
  for (;;) {
    const size_t end = text.find('\n');
    line_.append(text.substr(0, end));
    if (end == text.npos) return;
    // Blank lines set paragraphs of text apart.
    if (!line_.empty()) take_(line_);
    line_.clear();
    text.remove_prefix(end + 1);
  }
}

}  // namespace keelson::ctl
