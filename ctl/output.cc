#include "ctl/output.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/json.hpp>

#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

void WriteJson(const boost::json::value& value, const std::string& indent, std::string& out) {
  const std::string inner = indent + "    ";
  auto list = [&](char open, char close, const auto& items, const auto& write) {
    if (items.empty()) return out.append({open, close}), void();
    out += open;
    const char* separator = "\n";
    for (const auto& item : items) {
      out += separator + inner;
      write(item);
      separator = ",\n";
    }
    out += "\n" + indent + close;
  };
  if (auto* object = value.if_object()) {
    list('{', '}', *object, [&](const auto& member) {
      out += boost::json::serialize(boost::json::string(member.key())) + ": ";
      WriteJson(member.value(), inner, out);
    });
  } else if (auto* array = value.if_array()) {
    list('[', ']', *array, [&](const auto& item) { WriteJson(item, inner, out); });
  } else {
    out += boost::json::serialize(value);
  }
}

// Text that YAML would read as something else is quoted.
bool NeedsQuotes(const std::string& text) {
  if (text.empty()) return true;
  try {
    YAML::Node plain = YAML::Load(text);
    if (!plain.IsScalar() || plain.Scalar() != text) return true;
  } catch (const YAML::Exception&) {
    return true;
  }
  static const char* const kWords[] = {"true", "false", "yes", "no", "on", "off", "null", "~", "y", "n"};
  const std::string lower = Lower(text);
  bool word = std::any_of(std::begin(kWords), std::end(kWords), [&](const char* w) { return lower == w; });
  return word || std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-' || text[0] == '+' ||
         text[0] == '.';
}

void WriteYaml(const boost::json::value& value, YAML::Emitter& out) {
  if (auto* object = value.if_object()) {
    out << YAML::BeginMap;
    for (const auto& member : *object) {
      out << YAML::Key << std::string(member.key()) << YAML::Value;
      WriteYaml(member.value(), out);
    }
    out << YAML::EndMap;
  } else if (auto* array = value.if_array()) {
    out << (array->empty() ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
    for (const auto& item : *array) WriteYaml(item, out);
    out << YAML::EndSeq;
  } else if (auto* string = value.if_string()) {
    std::string text(string->data(), string->size());
    if (NeedsQuotes(text)) out << YAML::DoubleQuoted;
    out << text;
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << boost::json::serialize(value);
  }
}

}  // namespace

std::string ToJson(const boost::json::value& document) {
  std::string out;
  WriteJson(document, "", out);
  return out + "\n";
}

std::string ToYaml(const boost::json::value& document) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  WriteYaml(document, out);
  return std::string(out.c_str()) + "\n";
}

std::string AddressText(const std::optional<IpAddress>& ip, uint16_t port) {
  const std::string host = !ip ? "*" : ip->is_v4() ? ip->ToString() : "[" + ip->ToString() + "]";
  return host + ":" + std::to_string(port);
}

std::string ProtocolName(uint8_t protocol) {
  return protocol == 6 ? "TCP" : protocol == 17 ? "UDP" : protocol == 132 ? "SCTP" : std::to_string(protocol);
}

std::string ShortDuration(std::chrono::seconds time) {
  const int64_t seconds = time.count();
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kYear = 365 * kDay;
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < kMinute) return std::to_string(seconds) + "s";
  if (seconds < kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < kDay) return std::to_string(seconds / kHour) + "h";
  if (seconds < kYear) return std::to_string(seconds / kDay) + "d";
  return std::to_string(seconds / kYear) + "y";
}

std::string TextTable(const std::vector<std::vector<std::string>>& rows, size_t indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 3, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace keelson::ctl
