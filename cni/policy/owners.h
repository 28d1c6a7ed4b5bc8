// Which pod has which address, kept up to date pod by pod: what Members (members.h) works out at once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cni/policy/members.h"
#include "cni/policy/objects.h"

namespace keelson::cni::policy {

// Holds references to pods between Add() and Remove(): their contents must not change meanwhile.
class Owners {
 public:
  explicit Owners(std::string node) : node_(std::move(node)) {}

  void Add(const Pod& pod);
  void Remove(const Pod& pod);
  // Sets or clears the attachment of an address.
  void Attach(const IpAddress& address, std::optional<Attachment> attachment);
  const Attachments& attachments() const { return attachments_; }

  // By the rules of Members. Null: no pod has it.
  const Pod* OwnerOf(const IpAddress& address) const;
  // Every address that may be the pod's.
  std::vector<IpAddress> AddressesOf(const Pod& pod) const;
  // As the function of members.h.
  std::map<IpAddress, std::string> Unattached(const std::vector<IpPrefix>& pod_cidrs) const;

 private:
  bool IsLocal(const Pod& pod) const;
  const Pod* Attached(const std::string& uid) const;

  const std::string node_;
  Attachments attachments_;
  std::multimap<std::string, IpAddress> attached_by_uid_;
  std::unordered_multimap<IpAddress, const Pod*> claims_;  // what pods report
  // Of this node: by the UID, and by the UID of the static pod.
  std::multimap<std::string, const Pod*> by_uid_, by_static_uid_;
  std::set<const Pod*> reporting_;  // of this node, with addresses, and not terminating
};

}  // namespace keelson::cni::policy
