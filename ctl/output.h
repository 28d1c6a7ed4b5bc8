// Output of verbs: a table for people, JSON or YAML for programs.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::ctl {

enum class OutputFormat { kTable, kJson, kYaml };

std::string ToJson(const boost::json::value& document);  // indented
std::string ToYaml(const boost::json::value& document);  // keys in the document's order, as kubectl's

// "10.96.0.1:80", "[fd96::1]:80"; without an address "*:80".
std::string AddressText(const std::optional<IpAddress>& ip, uint16_t port);
std::string ProtocolName(uint8_t protocol);  // "TCP"

// 45s, 23m, 5h, 3d, 2y; "<invalid>" for what is over.
std::string ShortDuration(std::chrono::seconds time);

// Columns as wide as their widest cell, three spaces apart; the first row is the heading. `indent` spaces in
// front.
std::string TextTable(const std::vector<std::vector<std::string>>& rows, size_t indent = 0);

}  // namespace keelson::ctl
