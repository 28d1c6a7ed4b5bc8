// The values of flags as text, read and printed. Internal to this folder.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>
#include <vector>

#include "kubelet/config/config.h"
#include "lib/api/duration.h"

namespace keelson::kubelet {

template <typename List>
bool Contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

inline std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) out.push_back(part);
  return out;
}

inline Error Malformed(const std::string& pair) {
  return Error(Code::kBadRequest, "malformed pair, expect string=string, got \"" + pair + "\"");
}

// What a flag's text says. A flag that is given again adds to lists and maps.
class Parser {
 public:
  Parser(bool first, char separator) : first_(first), separator_(separator) {}

  Result<> Parse(const std::string& text, bool& out) const {
    static const std::string kTrue[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const std::string kFalse[] = {"0", "f", "F", "false", "FALSE", "False"};
    if (!Contains(kTrue, text) && !Contains(kFalse, text)) {
      return Error(Code::kBadRequest, "strconv.ParseBool: parsing \"" + text + "\": invalid syntax");
    }
    out = Contains(kTrue, text);
    return {};
  }
  Result<> Parse(const std::string& text, int32_t& out) const { return Number(text, "ParseInt", out); }
  Result<> Parse(const std::string& text, int64_t& out) const { return Number(text, "ParseInt", out); }
  Result<> Parse(const std::string& text, double& out) const {
    char* end = nullptr;
    out = std::strtod(text.c_str(), &end);
    if (text.empty() || *end) {
      return Error(Code::kBadRequest, "strconv.ParseFloat: parsing \"" + text + "\": invalid syntax");
    }
    return {};
  }
  Result<> Parse(const std::string& text, std::string& out) const {
    out = text;
    return {};
  }
  Result<> Parse(const std::string& text, Duration& out) const {
    KEELSON_ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(text));
    out = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(nanos));
    return {};
  }
  Result<> Parse(const std::string& text, std::vector<std::string>& out) const {
    if (first_) out.clear();
    for (std::string& part : Split(text, ',')) out.push_back(std::move(part));
    return {};
  }
  Result<> Parse(const std::string& text, StringMap& out) const {
    if (first_) out.clear();
    return Pairs(text, separator_, [&](const std::string& key, const std::string& value) -> Result<> {
      out[key] = value;
      return {};
    });
  }
  // Settings of the file stay, one by one.
  Result<> Parse(const std::string& text, std::map<std::string, bool>& out) const {
    return Pairs(text, '=', [&](const std::string& key, const std::string& value) -> Result<> {
      bool on = false;
      if (!Parse(value, on)) {
        return Error(Code::kBadRequest, "invalid value of " + key + "=" + value +
                                            ", err: strconv.ParseBool: parsing \"" + value +
                                            "\": invalid syntax");
      }
      out[key] = on;
      return {};
    });
  }
  Result<> Parse(const std::string& text, std::map<std::string, std::vector<std::string>>& out) const {
    if (first_) out.clear();
    return Pairs(text, ':', [&](const std::string& key, const std::string& value) -> Result<> {
      out[key].push_back(value);
      return {};
    });
  }
  Result<> Parse(const std::string&, std::vector<ShutdownPeriod>&) const { return {}; }  // has no flag
  Result<> Parse(const std::string& text, std::vector<NodeTaint>& out) const {
    if (first_) out.clear();
    for (const std::string& part : Split(text, ',')) {
      size_t colon = part.rfind(':');
      std::string key = part.substr(0, colon);
      NodeTaint taint;
      if (colon != std::string::npos) taint.effect = part.substr(colon + 1);
      taint.key = key.substr(0, key.find('='));
      if (key.find('=') != std::string::npos) taint.value = key.substr(key.find('=') + 1);
      if (taint.key.empty() || taint.effect.empty()) {
        return Error(Code::kBadRequest, "invalid taint spec: " + part);
      }
      out.push_back(std::move(taint));
    }
    return {};
  }
  // 0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi
  Result<> Parse(const std::string& text, std::vector<MemoryReservation>& out) const {
    if (first_) out.clear();
    for (const std::string& part : Split(text, ';')) {
      size_t colon = part.find(':');
      MemoryReservation one;
      if (colon == std::string::npos || !Parse(part.substr(0, colon), one.numa_node)) {
        return Error(Code::kBadRequest,
                     "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type="
                     "quantity...], got " +
                         part);
      }
      KEELSON_RETURN_IF_ERROR(Pairs(part.substr(colon + 1), '=',
                                    [&](const std::string& key, const std::string& value) -> Result<> {
                                      one.limits[key] = value;
                                      return {};
                                    }));
      out.push_back(std::move(one));
    }
    return {};
  }

 private:
  template <typename T>
  static Result<> Number(const std::string& text, const char* function, T& out) {
    const char* begin = text.data() + (!text.empty() && text[0] == '+' ? 1 : 0);
    auto [end, problem] = std::from_chars(begin, text.data() + text.size(), out);
    if (problem == std::errc::result_out_of_range) {
      return Error(Code::kBadRequest,
                   std::string("strconv.") + function + ": parsing \"" + text + "\": value out of range");
    }
    if (problem != std::errc() || end != text.data() + text.size()) {
      return Error(Code::kBadRequest,
                   std::string("strconv.") + function + ": parsing \"" + text + "\": invalid syntax");
    }
    return {};
  }
  template <typename Each>
  static Result<> Pairs(const std::string& text, char separator, Each each) {
    for (const std::string& pair : Split(text, ',')) {
      if (pair.empty()) continue;
      size_t at = pair.find(separator);
      if (at == std::string::npos || at == 0) return Malformed(pair);
      auto trim = [](std::string part) {
        part.erase(0, part.find_first_not_of(' '));
        part.erase(part.find_last_not_of(' ') + 1);
        return part;
      };
      KEELSON_RETURN_IF_ERROR(each(trim(pair.substr(0, at)), trim(pair.substr(at + 1))));
    }
    return {};
  }

  const bool first_;
  const char separator_;
};

// The other way round: what a flag's value is shown as.
class Printer {
 public:
  explicit Printer(char separator) : separator_(separator) {}

  std::string Print(bool value) const { return value ? "true" : "false"; }
  std::string Print(int32_t value) const { return std::to_string(value); }
  std::string Print(int64_t value) const { return std::to_string(value); }
  std::string Print(double value) const { return fmt::format("{}", value); }
  std::string Print(const std::string& value) const { return value; }
  std::string Print(Duration value) const {
    return api::FormatGoDuration(std::chrono::nanoseconds(value).count());
  }
  std::string Print(const std::vector<std::string>& value) const {
    return fmt::format("[{}]", fmt::join(value, ","));
  }
  template <typename T>
  std::string Print(const std::map<std::string, T>& value) const {
    std::string out;
    for (const auto& [name, item] : value) out += (out.empty() ? "" : ",") + name + separator_ + Print(item);
    return out;
  }
  // A header's values may be credentials.
  std::string Print(const std::map<std::string, std::vector<std::string>>& value) const {
    return value.empty() ? "" : "CLASSIFIED";
  }
  std::string Print(const std::vector<ShutdownPeriod>&) const { return ""; }  // has no flag
  std::string Print(const std::vector<NodeTaint>& value) const {
    std::string out;
    for (const NodeTaint& taint : value) {
      out += (out.empty() ? "" : ",") + taint.key + "=" + taint.value + ":" + taint.effect;
    }
    return out;
  }
  std::string Print(const std::vector<MemoryReservation>& value) const {
    std::string out;
    for (const MemoryReservation& item : value) {
      out += (out.empty() ? "" : ";") + std::to_string(item.numa_node) + ":" + Print(item.limits);
    }
    return out;
  }

 private:
  const char separator_;
};

}  // namespace keelson::kubelet
