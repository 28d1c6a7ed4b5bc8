#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <libnftnl/rule.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <iterator>
#include <memory>

#include "lib/nft/attributes_internal.h"
#include "lib/nft/decode_expr_internal.h"
#include "lib/nft/decode_internal.h"
#include "lib/nft/program.h"
#include "lib/nft/socket_internal.h"

namespace keelson::nft {
namespace {

constexpr int kAttempts = 20;

void DecodeProgram(const nlmsghdr* header, LiveTable& into) {
  struct Free {
    void operator()(nftnl_rule* rule) const { nftnl_rule_free(rule); }
  };
  std::unique_ptr<nftnl_rule, Free> rule(nftnl_rule_alloc());
  if (nftnl_rule_nlmsg_parse(header, rule.get()) < 0) return;
  const char* table = nftnl_rule_get_str(rule.get(), NFTNL_RULE_TABLE);
  const char* chain = nftnl_rule_get_str(rule.get(), NFTNL_RULE_CHAIN);
  if (!table || !chain || into.contents.table.name != table) return;
  Program program{.handle = nftnl_rule_get_u64(rule.get(), NFTNL_RULE_HANDLE)};
  auto add = [](nftnl_expr* e, void* out) {
    DecodeExpr(e, *static_cast<Program*>(out));
    return 0;
  };
  nftnl_expr_foreach(rule.get(), add, &program);
  Rule commented(chain);
  commented.set_found_comment(CommentOf(rule.get()));
  program.note = commented.note();
  into.programs[chain].push_back(std::move(program));
}

// Reads over one socket; remembers whether something has changed in between.
class Reader {
 public:
  Reader(NetfilterSocket& socket, uint32_t& seq) : socket_(socket), seq_(seq) {}

  bool torn() const { return torn_; }

  Result<uint32_t> Generation() {
    uint32_t generation = 0;
    KEELSON_RETURN_IF_ERROR(socket_.Query(NFT_MSG_GETGEN, 0, 0, seq_++, {}, [&](const nlmsghdr* header) {
      ForEachAttribute(header, sizeof(nfgenmsg), [&](const nlattr* attribute) {
        if (mnl_attr_get_type(attribute) == NFTA_GEN_ID) generation = ntohl(mnl_attr_get_u32(attribute));
      });
    }));
    return generation;
  }

  Result<> ReadRulesOnly(LiveTable& out) {
    const Table& table = out.contents.table;
    Result<> read = Dump(table.family, NFT_MSG_GETRULE, {{NFTA_RULE_TABLE, table.name}},
                         [&](const nlmsghdr* header) { DecodeProgram(header, out); });
    return read || read.error().Is(Code::kNotFound) ? Result<>() : read;
  }

  // An empty name reads all tables of the family.
  Result<std::vector<LiveTable>> Read(const Table& wanted) {
    std::vector<LiveTable> out;
    KEELSON_RETURN_IF_ERROR(Dump(wanted.family, NFT_MSG_GETTABLE, {}, [&](const nlmsghdr* header) {
      ForEachAttribute(header, sizeof(nfgenmsg), [&](const nlattr* attribute) {
        if (mnl_attr_get_type(attribute) != NFTA_TABLE_NAME) return;
        std::string name = mnl_attr_get_str(attribute);
        if (!wanted.name.empty() && wanted.name != name) return;
        out.push_back({.contents = {.table = {wanted.family, std::move(name)}}, .programs = {}});
      });
    }));
    for (LiveTable& table : out) KEELSON_RETURN_IF_ERROR(Fill(table));
    return out;
  }

 private:
  using Attributes = std::vector<std::pair<uint16_t, std::string>>;

  Result<> Dump(Family family, int type, const Attributes& attributes, const NetfilterSocket::Each& each) {
    return socket_.Query(type, static_cast<uint16_t>(family), NLM_F_DUMP, seq_++, attributes,
                         [&](const nlmsghdr* header) {
                           torn_ = torn_ || (header->nlmsg_flags & NLM_F_DUMP_INTR);
                           each(header);
                         });
  }

  Result<> Fill(LiveTable& out) {
    Ruleset& contents = out.contents;
    const Table& table = contents.table;
    KEELSON_RETURN_IF_ERROR(Dump(table.family, NFT_MSG_GETCHAIN, {{NFTA_CHAIN_TABLE, table.name}},
                                 [&](const nlmsghdr* header) { DecodeChain(header, contents); }));
    KEELSON_RETURN_IF_ERROR(Dump(table.family, NFT_MSG_GETRULE, {{NFTA_RULE_TABLE, table.name}},
                                 [&](const nlmsghdr* header) { DecodeProgram(header, out); }));
    KEELSON_RETURN_IF_ERROR(Dump(table.family, NFT_MSG_GETSET, {{NFTA_SET_TABLE, table.name}},
                                 [&](const nlmsghdr* header) { DecodeSet(header, contents); }));
    for (auto& entry : contents.sets) {
      Ruleset::SetContents& set = entry.second;
      KEELSON_RETURN_IF_ERROR(
          Dump(table.family, NFT_MSG_GETSETELEM,
               {{NFTA_SET_ELEM_LIST_TABLE, table.name}, {NFTA_SET_ELEM_LIST_SET, entry.first}},
               [&](const nlmsghdr* header) { DecodeElements(header, set); }));
    }
    return {};
  }

  NetfilterSocket& socket_;
  uint32_t& seq_;  // shared by successive readers, to tell leftovers of an earlier dump by their number
  bool torn_ = false;
};

Result<std::vector<LiveTable>> ReadAll(const std::vector<Table>& wanted) {
  KEELSON_ASSIGN_OR_RETURN(NetfilterSocket socket, NetfilterSocket::Open());
  uint32_t seq = 1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Reader reader(socket, seq);
    KEELSON_ASSIGN_OR_RETURN(uint32_t before, reader.Generation());
    std::vector<LiveTable> out;
    Result<> read;
    for (const Table& table : wanted) {
      Result<std::vector<LiveTable>> tables = reader.Read(table);
      if (!tables) {
        read = tables.error();
        break;
      }
      std::move(tables->begin(), tables->end(), std::back_inserter(out));
    }
    KEELSON_ASSIGN_OR_RETURN(uint32_t after, reader.Generation());
    if (before != after || reader.torn()) continue;
    KEELSON_RETURN_IF_ERROR(read);
    return out;
  }
  return Error(Code::kUnavailable, "nftables change faster than they can be read");
}

}  // namespace

Result<std::vector<LiveTable>> ReadLiveTables(const std::vector<Family>& families) {
  std::vector<Table> wanted;
  for (Family family : families) wanted.push_back({family, ""});
  return ReadAll(wanted);
}

Result<std::map<std::string, std::vector<Program>>> ReadRules(const Table& table) {
  KEELSON_ASSIGN_OR_RETURN(NetfilterSocket socket, NetfilterSocket::Open());
  uint32_t seq = 1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Reader reader(socket, seq);
    LiveTable out{.contents = {.table = table}, .programs = {}};
    KEELSON_RETURN_IF_ERROR(reader.ReadRulesOnly(out));
    if (!reader.torn()) return std::move(out.programs);
  }
  return Error(Code::kUnavailable, "nftables change faster than they can be read");
}

Result<std::optional<LiveTable>> ReadLiveTable(const Table& table) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<LiveTable> found, ReadAll({table}));
  if (found.empty()) return std::optional<LiveTable>();
  return std::optional<LiveTable>(std::move(found[0]));
}

}  // namespace keelson::nft
