#include "ctl/phases/phase_log.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <sstream>
#include <vector>

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;

TEST(PhaseLog, TellsWhatPhasesDidAndHowLongTheyTook) {
  FakeClock clock;
  PhaseLog log(nullptr, clock);
  log.Begin("certs/ca");
  clock.Advance(std::chrono::milliseconds(1250));
  log.End({});
  log.Begin("control-plane");
  log.End(Error(Code::kInvalid, "no"));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(boost::json::serialize(log.phases()),
            R"([{"name":"certs/ca","seconds":1.25E0},{"name":"control-plane","seconds":0E0,"error":"no"}])");
  EXPECT_EQ(log.seconds(), 2.25);
}

TEST(PhaseLog, WritesLinesOfJson) {
  FakeClock clock;
  std::ostringstream lines;
  PhaseLog log(&lines, clock);
  log.Message("message", "[init] before");
  log.Begin("certs/ca");
  log.Message("warning", "[certs] \"quoted\"");
  clock.Advance(std::chrono::seconds(2));
  log.End(Error(Code::kInvalid, "no"));
  std::vector<std::string> events;
  std::istringstream in(lines.str());
  for (std::string line; std::getline(in, line);) {
    const boost::json::object event = boost::json::parse(line).as_object();
    EXPECT_TRUE(event.contains("time"));
    std::string text(event.at("event").as_string());
    for (const char* key : {"phase", "message", "error"}) {
      if (event.contains(key)) text += " " + std::string(event.at(key).as_string());
    }
    if (event.contains("seconds")) text += " " + std::to_string(event.at("seconds").to_number<int>());
    events.push_back(text);
  }
  EXPECT_THAT(events, ElementsAre("message [init] before", "begin certs/ca",
                                  "warning certs/ca [certs] \"quoted\"", "end certs/ca no 2"));
}

TEST(LineStream, GivesWholeLines) {
  std::vector<std::string> lines;
  {
    LineStream stream([&](std::string_view line) { lines.emplace_back(line); });
    stream << "one " << 1 << "\n\ntwo\nthree" << std::flush;
    EXPECT_THAT(lines, ElementsAre("one 1", "two"));
    stream << '!' << '\n' << "rest";
  }
  EXPECT_THAT(lines, ElementsAre("one 1", "two", "three!", "rest"));
}

}  // namespace
}  // namespace keelson::ctl
