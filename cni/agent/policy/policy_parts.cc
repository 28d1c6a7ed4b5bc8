#include "cni/agent/policy/policy_parts.h"

#include <netinet/in.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "cni/agent/policy/wire.h"
#include "lib/dataplane/domain_sets.h"

namespace keelson::cni::agent {

namespace json = boost::json;
using policy::Selector;

namespace json_parts {

const json::value* Find(const json::value& value, std::string_view field) {
  return value.is_object() ? value.get_object().if_contains(field) : nullptr;
}
const json::array& List(const json::value& value, std::string_view field) {
  static const json::array none;
  const json::value* found = Find(value, field);
  return found && found->is_array() ? found->get_array() : none;
}
std::string Text(const json::value& value, std::string_view field) {
  const json::value* found = Find(value, field);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}
int64_t Number(const json::value& value, std::string_view field) {
  const json::value* found = Find(value, field);
  return found && found->is_int64() ? found->get_int64() : 0;
}

}  // namespace json_parts

using json_parts::Find;
using json_parts::List;
using json_parts::Number;
using json_parts::Text;

// A field that is not known may narrow down what is meant.
void PartReader::ExpectOnly(const json::value& value, std::initializer_list<std::string_view> fields,
                            const char* what) {
  if (!value.is_object()) {
    problem_ = std::string("invalid ") + what;
    return;
  }
  for (const auto& [field, contents] : value.get_object()) {
    if (std::find(fields.begin(), fields.end(), std::string_view(field)) == fields.end()) {
      problem_ = "unknown field \"" + std::string(field) + "\" of " + what;
    }
  }
}

Selector PartReader::ReadSelector(const json::value& value) {
  ExpectOnly(value, {"matchExpressions", "matchLabels"}, "a selector");
  Selector out;
  for (const json::value& expression : List(value, "matchExpressions")) {
    Selector::Requirement& wanted = out.requirements.emplace_back();
    wanted.key = Text(expression, "key");
    const std::string name = Text(expression, "operator");
    wanted.op = OperatorOf(name);
    if (wanted.op == Selector::Op::kNothing) problem_ = "unknown operator \"" + name + "\" of a selector";
    for (const json::value& one : List(expression, "values")) {
      if (one.is_string()) wanted.values.emplace_back(one.get_string());
    }
  }
  const json::value* labels = Find(value, "matchLabels");
  if (!labels || !labels->is_object()) return out;
  policy::Labels equal;  // sorted, so that equal selectors have equal texts
  for (const auto& [key, wanted] : labels->get_object()) {
    if (wanted.is_string()) equal.emplace(key, std::string(wanted.get_string()));
  }
  for (const auto& [key, wanted] : equal) out.requirements.push_back({.key = key, .values = {wanted}});
  return out;
}

bool PartReader::ReadSelectors(const json::value& value, Selector& namespaces, Selector& pods) {
  if (const json::value* found = Find(value, "namespaces")) {
    namespaces = ReadSelector(*found);
    return true;
  }
  const json::value* found = Find(value, "pods");
  if (!found) return false;
  ExpectOnly(*found, {"namespaceSelector", "podSelector"}, "pods");
  if (const json::value* of = Find(*found, "namespaceSelector")) namespaces = ReadSelector(*of);
  if (const json::value* of = Find(*found, "podSelector")) pods = ReadSelector(*of);
  return true;
}

void PartReader::ReadPeer(const json::value& value, Place place, std::vector<policy::Peer>& out) {
  policy::Peer peer{.pods = Selector(), .namespaces = Selector()};
  if (!value.is_object() || value.get_object().size() != 1) {
    problem_ = "a peer without exactly one field that is known";
  } else if (ReadSelectors(value, *peer.namespaces, *peer.pods)) {
    out.push_back(std::move(peer));
  } else if (Find(value, "networks") && !place.ingress) {
    for (const json::value& cidr : List(value, "networks")) {
      Result<IpPrefix> parsed = IpPrefix::Parse(cidr.is_string() ? std::string_view(cidr.get_string()) : "");
      if (!parsed) problem_ = "a network that is no CIDR";
      if (parsed) out.push_back({.block = policy::Block{.cidr = parsed->Masked()}});
    }
  } else if (Find(value, "domainNames") && !place.ingress) {
    if (!place.accepts) problem_ = "domainNames in a rule that does not accept";
    for (const json::value& name : List(value, "domainNames")) {
      std::optional<std::string> pattern =
          dataplane::DomainPattern(name.is_string() ? std::string_view(name.get_string()) : "");
      if (!pattern) problem_ = "a domain name that is not of the form that the API has";
      if (pattern) out.push_back({.domain = std::move(*pattern)});
    }
  } else if (const json::value* nodes = place.ingress ? nullptr : Find(value, "nodes")) {
    out.push_back({.nodes = ReadSelector(*nodes)});
  } else {
    problem_ =
        "peers of the kind \"" + std::string(value.get_object().begin()->key()) + "\" are not supported";
  }
}

void PartReader::ReadProtocol(const json::value& value, std::vector<policy::Port>& out) {
  if (!value.is_object() || value.get_object().size() != 1) {
    problem_ = "a protocol without exactly one field that is known";
    return;
  }
  for (auto [field, number] :
       {std::pair("tcp", IPPROTO_TCP), std::pair("udp", IPPROTO_UDP), std::pair("sctp", IPPROTO_SCTP)}) {
    const json::value* found = Find(value, field);
    if (!found) continue;
    policy::Port port{.protocol = static_cast<uint8_t>(number)};
    const json::value* destination = Find(*found, "destinationPort");
    if (destination) {
      const json::value* range = Find(*destination, "range");
      const int64_t first = range ? Number(*range, "start") : Number(*destination, "number");
      ReadRange(first, range ? Number(*range, "end") : first, port);
    }
    // A field beside it may narrow the match down.
    if (!found->is_object() || found->get_object().size() != 1 || !destination) {
      problem_ = "a protocol without a destinationPort alone";
    }
    out.push_back(std::move(port));
    return;
  }
  const std::string name = Text(value, "destinationNamedPort");
  if (name.empty()) problem_ = "an unknown protocol";
  AddNamed(name, out);
}

void PartReader::ReadPort(const json::value& value, std::vector<policy::Port>& out) {
  const json::value *number = Find(value, "portNumber"), *range = Find(value, "portRange");
  if (!value.is_object() || value.get_object().size() != 1) {
    problem_ = "a port without exactly one field that is known";
  } else if (number || range) {
    const json::value& found = number ? *number : *range;
    const std::optional<uint8_t> protocol = ProtocolNumber(Text(found, "protocol"));
    if (!protocol) problem_ = "unknown protocol \"" + Text(found, "protocol") + "\"";
    policy::Port port{.protocol = protocol.value_or(0)};
    ReadRange(Number(found, number ? "port" : "start"), Number(found, number ? "port" : "end"), port);
    out.push_back(std::move(port));
  } else {
    const std::string name = Text(value, "namedPort");
    if (name.empty()) problem_ = "an unknown kind of port";
    AddNamed(name, out);
  }
}

void PartReader::ReadRange(int64_t first, int64_t last, policy::Port& out) {
  if (first < 1 || last < first || last > 65535) {
    problem_ = "an invalid port or range of ports";
    return;
  }
  out.first = static_cast<uint16_t>(first);
  out.last = static_cast<uint16_t>(last);
}

void PartReader::AddNamed(const std::string& name, std::vector<policy::Port>& out) {
  if (name.empty()) return;
  for (int number : {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP}) {
    out.push_back({.protocol = static_cast<uint8_t>(number), .name = name});
  }
}

}  // namespace keelson::cni::agent
