// What a run's phases did and how long they took, for the verbs' documents; and their progress as lines of JSON, for programs:
//
//   {"time":"...","phase":"certs/ca","event":"begin"}
//   {"time":"...","phase":"certs/ca","event":"message","message":"[certs] Generating ..."}    or "warning"
//   {"time":"...","phase":"certs/ca","event":"end","seconds":0.012}                           and "error" where it has failed
//
// Lines outside of any phase have no "phase".
#pragma once

#include <boost/json/array.hpp>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::ctl {

class PhaseLog {
 public:
  // `lines`: where lines of JSON go; null: nowhere. It outlives the log.
  explicit PhaseLog(std::ostream* lines, Clock& clock = Clock::Real());

  void Begin(std::string_view phase);
  void End(const Result<>& done);
  void Message(const char* event, std::string_view text);

  // {"name": ..., "seconds": ..., "error": ...} of each phase that has ended.
  const boost::json::array& phases() const { return phases_; }
  double seconds() const;  // since the log was made

 private:
  void Write(const char* event, std::string_view key, boost::json::value value);
  double Since(SteadyTime begin) const;

  std::ostream* const lines_;
  Clock& clock_;
  const SteadyTime made_;
  std::string phase_;
  SteadyTime begun_;
  boost::json::array phases_;
};

// A stream that gives each whole line to a function; what is left without an end goes with the stream.
class LineStream : private std::streambuf, public std::ostream {
 public:
  explicit LineStream(std::function<void(std::string_view)> take);
  ~LineStream() override;
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

 private:
  int overflow(int c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  void Add(std::string_view text);

  const std::function<void(std::string_view)> take_;
  std::string line_;
};

}  // namespace keelson::ctl
