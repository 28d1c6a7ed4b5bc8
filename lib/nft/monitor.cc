#include "lib/nft/monitor.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cstring>

#include "lib/nft/attributes_internal.h"

namespace keelson::nft {
namespace {

void Note(const nlmsghdr* message, std::vector<TableChange>& out) {
  if (NFNL_SUBSYS_ID(message->nlmsg_type) != NFNL_SUBSYS_NFTABLES ||
      NFNL_MSG_TYPE(message->nlmsg_type) == NFT_MSG_NEWGEN ||
      message->nlmsg_len < NLMSG_SPACE(sizeof(nfgenmsg))) {
    return;
  }
  auto* header = static_cast<const nfgenmsg*>(mnl_nlmsg_get_payload(message));
  TableChange change{.family = static_cast<Family>(header->nfgen_family), .author = message->nlmsg_pid};
  // Attribute 1 is the table's name in messages about every kind of object.
  ForEachAttribute(message, sizeof(nfgenmsg), [&](const nlattr* attribute) {
    if (mnl_attr_get_type(attribute) == NFTA_TABLE_NAME && mnl_attr_get_payload_len(attribute) > 0) {
      auto* text = static_cast<const char*>(mnl_attr_get_payload(attribute));
      change.table.assign(text, ::strnlen(text, mnl_attr_get_payload_len(attribute)));
    }
  });
  if (out.empty() || !(out.back() == change)) {
    if (std::find(out.begin(), out.end(), change) == out.end()) out.push_back(std::move(change));
  }
}

}  // namespace

Result<Monitor> Monitor::Open() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetlinkEvents events, linux::NetlinkEvents::Open(NETLINK_NETFILTER));
  Monitor out(std::move(events));
  KEELSON_RETURN_IF_ERROR(out.Listen(true));
  return out;
}

Result<> Monitor::Listen(bool on) { return events_.Listen(NFNLGRP_NFTABLES, on); }

Result<Monitor::Changes> Monitor::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  Changes out;
  KEELSON_RETURN_IF_ERROR(events_.Wait(stop, timeout, [&](const nlmsghdr* message) {
    message ? Note(message, out.tables) : (void)(out.lost = true);
    return out.lost || !out.tables.empty();
  }));
  return out;
}

}  // namespace keelson::nft
