#include "cni/bridge/sender_check.h"

#include "cni/lib/labelled_elements.h"
#include "cni/lib/linger.h"
#include "lib/nft/kernel.h"

namespace keelson::cni {
namespace {

constexpr char kChain[] = "prerouting";
constexpr int kBeforeEverything = -300;  // NF_BR_PRI_NAT_DST_BRIDGED

nft::Table Table() { return {nft::Family::kBridge, "keelson-cni"}; }
// The checked ports, and their allowed addresses. Elements of both carry labels.
nft::Set Ports() { return {.name = "checked-ports", .key = {nft::Type::kIfname}}; }
nft::Set Senders() { return {.name = "senders", .key = {nft::Type::kIfname, nft::Type::kEtherAddr}}; }

std::string SenderKey(const std::string& port, const netlink::MacAddress& mac) {
  return nft::Key().Ifname(port).EtherAddr({reinterpret_cast<const char*>(mac.bytes().data()), 6}).bytes();
}

void MakeTable(nft::Transaction& t) {
  t.AddTable();
  t.AddSet(Ports());
  t.AddSet(Senders());
  t.CreateChain({.name = kChain,
                 .hook = nft::Hook{nft::HookType::kFilter, nft::HookPoint::kPrerouting, kBeforeEverything}});
  nft::Rule drop(kChain);
  drop.Load(0, nft::Field::kIifName).InSet(0, Ports().name).Load(4, nft::Field::kEtherSaddr);
  t.AddRule(drop.NotInSet(0, Senders().name).Finish({nft::Verdict::Kind::kDrop}));
}

}  // namespace

Outcome<> CheckSender(const std::string& port, const netlink::MacAddress& mac, const std::string& label) {
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  for (bool retried = false;; retried = true) {
    KEELSON_ASSIGN_OR_RETURN(bool there, kernel->HasChain(Table(), kChain));
    nft::Transaction t(Table());
    if (!there) MakeTable(t);
    t.AddElements(Senders(), {{.key = SenderKey(port, mac), .comment = label}});
    t.AddElements(Ports(), {{.key = nft::Key().Ifname(port).bytes(), .comment = label}});
    Result<> applied = kernel->Apply(t);
    if (applied) return {};
    // Another plugin made the chain at the same time.
    if (there || retried || !applied.error().Is(Code::kAlreadyExists)) return applied.error();
  }
}

Outcome<> RemoveSenders(const std::function<bool(std::string_view label)>& unwanted) {
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  KEELSON_ASSIGN_OR_RETURN(auto removed, RemoveElements(*kernel, Table(), unwanted));
  if (!removed.empty()) CloseSocketsInChild();
  return {};
}

Outcome<> VerifySender(const std::string& port, const netlink::MacAddress& mac) {
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  KEELSON_ASSIGN_OR_RETURN(auto found, kernel->ReadSets(Table()));
  if (found && found->sets["checked-ports"].elements.contains(nft::Key().Ifname(port).bytes()) &&
      found->sets["senders"].elements.contains(SenderKey(port, mac))) {
    return {};
  }
  return CniError{kCheckFailed, port + " is not held to MAC address " + mac.ToString(), ""};
}

}  // namespace keelson::cni
