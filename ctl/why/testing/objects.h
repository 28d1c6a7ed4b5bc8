// For tests: objects of the API from their JSON.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ctl/why/why_report.h"
#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::ctl {

template <typename T>
T Parse(const std::string& text) {
  T object;
  auto decoded = api::DecodeJson(text, object);
  EXPECT_TRUE(decoded) << decoded.error().message() << "\n" << text;
  return object;
}

// An event of the object or, with a field path, of a part of it: "spec.containers{main}".
inline corev1::Event ParseEvent(const std::string& reason, const std::string& message,
                                const std::string& field_path = "") {
  corev1::Event event;
  event.set_reason(reason);
  event.set_message(message);
  event.mutable_involved_object()->set_field_path(field_path);
  return event;
}

inline std::vector<std::string> ReasonsOf(const WhyReport& report) {
  std::vector<std::string> out;
  for (const Problem& problem : report.problems) out.push_back(problem.reason);
  return out;
}

// Whether there is a command with these words.
inline bool Advises(const WhyReport& report, const std::string& words) {
  for (const Problem& problem : report.problems) {
    for (const std::string& command : problem.next) {
      if (command.find(words) != std::string::npos) return true;
    }
  }
  return false;
}

// Whether there is a line of evidence with these words.
inline bool Shows(const WhyReport& report, const std::string& words) {
  for (const Problem& problem : report.problems) {
    for (const std::string& line : problem.evidence) {
      if (line.find(words) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace keelson::ctl
