// Reads parts of ClusterNetworkPolicies and AdminNetworkPolicies from JSON: selectors, peers, protocols, ports. What is not
// understood sets a problem; the caller decides what then becomes of the rule.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cni/policy/objects.h"

namespace keelson::cni::agent {

namespace json_parts {

const boost::json::value* Find(const boost::json::value& value, std::string_view field);  // null: absent
const boost::json::array& List(const boost::json::value& value, std::string_view field);  // empty: absent
std::string Text(const boost::json::value& value, std::string_view field);                // empty: absent
// 0 for what is no whole number of a sensible size.
int64_t Number(const boost::json::value& value, std::string_view field);

}  // namespace json_parts

// A part of one rule, or of a subject; `problem` is set when it cannot be understood.
class PartReader {
 public:
  explicit PartReader(std::string& problem) : problem_(problem) {}

  // `namespaces`, or `pods` with both selectors; false when there is neither.
  bool ReadSelectors(const boost::json::value& value, policy::Selector& namespaces, policy::Selector& pods);

  struct Place {
    bool ingress = false;
    bool accepts = false;  // by the rule's action
  };
  void ReadPeer(const boost::json::value& value, Place place, std::vector<policy::Peer>& out);
  // An entry of `protocols` (v1alpha2 and later).
  void ReadProtocol(const boost::json::value& value, std::vector<policy::Port>& out);
  // An entry of `ports` (v1alpha1).
  void ReadPort(const boost::json::value& value, std::vector<policy::Port>& out);

 private:
  policy::Selector ReadSelector(const boost::json::value& value);
  void ReadRange(int64_t first, int64_t last, policy::Port& out);
  void AddNamed(const std::string& name, std::vector<policy::Port>& out);
  void ExpectOnly(const boost::json::value& value, std::initializer_list<std::string_view> fields,
                  const char* what);

  std::string& problem_;
};

}  // namespace keelson::cni::agent
