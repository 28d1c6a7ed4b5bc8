#include "lib/nft/kernel.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>

#include "lib/nft/attributes_internal.h"
#include "lib/nft/decode_internal.h"
#include "lib/nft/encode_internal.h"
#include "lib/nft/socket_internal.h"
#include "lib/nft/text.h"

namespace keelson::nft {
namespace {

// The element of a message that the kernel objects to: the one that contains the attribute at `offset`.
size_t ElementAt(const nlmsghdr* message, uint32_t offset) {
  const nlattr* list = nullptr;
  ForEachAttribute(message, sizeof(nfgenmsg), [&](const nlattr* attribute) {
    if (mnl_attr_get_type(attribute) == NFTA_SET_ELEM_LIST_ELEMENTS) list = attribute;
  });
  size_t index = 0, found = 0;
  if (!list) return found;
  ForEachNested(list, [&](const nlattr* attribute) {
    auto begin = static_cast<uint32_t>(reinterpret_cast<const char*>(attribute) -
                                       reinterpret_cast<const char*>(message));
    if (offset >= begin && offset < begin + attribute->nla_len) found = index;
    ++index;
  });
  return found;
}

// Text for the change that a refused message belongs to, cut down to the element in question.
std::string Describe(const Transaction& transaction, const Batch& batch, uint32_t seq, uint32_t offset) {
  uint32_t index = seq - batch.first_seq - 1;
  std::string where = ToText(transaction.table()) + ": ";
  if (index >= batch.messages.size()) return where + "commit";
  const Batch::Message& message = batch.messages[index];
  Op op = transaction.ops()[message.op];
  auto* header = reinterpret_cast<const nlmsghdr*>(batch.bytes.data() + message.offset);
  auto cut = [&](std::vector<Element>& elements) {
    size_t at = std::min(message.first_element + ElementAt(header, offset), elements.size() - 1);
    elements = {elements[at]};
  };
  if (auto* add = std::get_if<op::AddElements>(&op)) cut(add->elements);
  if (auto* remove = std::get_if<op::DeleteElements>(&op)) cut(remove->elements);
  return where + ToText(op);
}

std::vector<std::string> NamesOf(const Ruleset& found) {
  std::vector<std::string> out;
  out.reserve(found.sets.size());
  for (const auto& [name, contents] : found.sets) out.push_back(name);
  return out;
}

class RealKernel : public Kernel {
 public:
  explicit RealKernel(NetfilterSocket socket) : socket_(std::move(socket)) {}

  uint32_t port() const override { return socket_.port(); }

  Result<> Apply(const Transaction& transaction) override {
    if (transaction.empty()) return {};
    Batch batch = Encode(transaction, seq_);
    seq_ += static_cast<uint32_t>(batch.messages.size()) + 2;
    KEELSON_RETURN_IF_ERROR(socket_.Send(batch.bytes));
    uint32_t last = batch.first_seq + static_cast<uint32_t>(batch.messages.size());
    std::optional<Error> failure;
    bool done = false;
    // The kernel processed the whole batch before send() returned, so all answers are queued.
    Result<> read = socket_.ReceiveQueued([&](const nlmsghdr* header) {
      if (header->nlmsg_type != NLMSG_ERROR || header->nlmsg_seq < batch.first_seq) return;
      auto* answer = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(header));
      if (answer->error == 0) {
        done = done || header->nlmsg_seq == last;
      } else if (!failure) {
        std::string what = Describe(transaction, batch, header->nlmsg_seq, socket_.BadAttribute(header));
        failure = Error::FromErrno(-answer->error, what);
      }
    });
    if (failure) return *failure;
    KEELSON_RETURN_IF_ERROR(read);
    if (!done) return Error(Code::kInternal, ToText(transaction.table()) + ": no answer to a transaction");
    return {};
  }

  Result<std::optional<Ruleset>> Read(const Table& table) override {
    for (int attempt = 0; attempt < 20; ++attempt) {
      KEELSON_ASSIGN_OR_RETURN(uint32_t before, Generation());
      bool torn = false;
      Result<std::optional<Ruleset>> found = ReadOnce(table, torn);
      if (!found && !torn) return found;
      KEELSON_ASSIGN_OR_RETURN(uint32_t after, Generation());
      if (found && !torn && before == after) return found;
    }
    return Error(Code::kUnavailable, ToText(table) + " changes faster than it can be read");
  }

  Result<std::optional<Ruleset>> ReadSets(const Table& table) override {
    Ruleset out{.table = table};
    KEELSON_ASSIGN_OR_RETURN(bool exists, HasTable(table));
    if (!exists) return std::optional<Ruleset>();
    KEELSON_RETURN_IF_ERROR(Ask(table, NFT_MSG_GETSET, NLM_F_DUMP, {{NFTA_SET_TABLE, table.name}},
                                [&](const nlmsghdr* header) { DecodeSet(header, out); }));
    KEELSON_RETURN_IF_ERROR(FillSets(out));
    return std::optional<Ruleset>(std::move(out));
  }

  Result<std::optional<Ruleset>> ReadSets(const Table& table,
                                          const std::vector<std::string>& names) override {
    Ruleset out{.table = table};
    KEELSON_ASSIGN_OR_RETURN(bool exists, HasTable(table));
    if (!exists) return std::optional<Ruleset>();
    for (const std::string& name : names) {
      Result<> found = Ask(table, NFT_MSG_GETSET, 0, {{NFTA_SET_TABLE, table.name}, {NFTA_SET_NAME, name}},
                           [&](const nlmsghdr* header) { DecodeSet(header, out); });
      if (!found && !found.error().Is(Code::kNotFound)) return found.error();
    }
    KEELSON_RETURN_IF_ERROR(FillSets(out));
    return std::optional<Ruleset>(std::move(out));
  }

  Result<std::vector<std::string>> SetNames(const Table& table) override {
    Ruleset found{.table = table};
    Result<> asked = Ask(table, NFT_MSG_GETSET, NLM_F_DUMP, {{NFTA_SET_TABLE, table.name}},
                         [&](const nlmsghdr* header) { DecodeSet(header, found); });
    if (!asked && !asked.error().Is(Code::kNotFound)) return asked.error();
    return NamesOf(found);
  }

  Result<bool> HasChain(const Table& table, const std::string& chain) override {
    Result<> found =
        socket_.Query(NFT_MSG_GETCHAIN, static_cast<uint16_t>(table.family), 0, seq_++,
                      {{NFTA_CHAIN_TABLE, table.name}, {NFTA_CHAIN_NAME, chain}}, [](const nlmsghdr*) {});
    if (!found && found.error().Is(Code::kNotFound)) return false;
    if (!found) return found.error();
    return true;
  }

  Result<uint32_t> Generation() override {
    uint32_t generation = 0;
    KEELSON_RETURN_IF_ERROR(socket_.Query(NFT_MSG_GETGEN, 0, 0, seq_++, {}, [&](const nlmsghdr* header) {
      ForEachAttribute(header, sizeof(nfgenmsg), [&](const nlattr* attribute) {
        if (mnl_attr_get_type(attribute) == NFTA_GEN_ID) generation = ntohl(mnl_attr_get_u32(attribute));
      });
    }));
    return generation;
  }

 private:
  using Attributes = std::vector<std::pair<uint16_t, std::string>>;

  Result<> Ask(const Table& table, int type, int flags, const Attributes& attributes,
               const NetfilterSocket::Each& each) {
    return socket_.Query(type, static_cast<uint16_t>(table.family), flags, seq_++, attributes, each);
  }

  Result<bool> HasTable(const Table& table) {
    Result<> found = Ask(table, NFT_MSG_GETTABLE, 0, {{NFTA_TABLE_NAME, table.name}}, [](const nlmsghdr*) {});
    if (!found && found.error().Is(Code::kNotFound)) return false;
    if (!found) return found.error();
    return true;
  }

  // Reads the elements of all sets; sets that go meanwhile are left out.
  Result<> FillSets(Ruleset& out) {
    for (auto set = out.sets.begin(); set != out.sets.end();) {
      // A dump that a change has disturbed may have missed elements: repeat it.
      Result<> read;
      bool torn = true;
      for (int attempt = 0; torn && attempt < 20; ++attempt) {
        torn = false;
        set->second.elements.clear();
        read = ReadElements(out.table, set->second, torn);
        if (!read) break;
      }
      if (!read && !read.error().Is(Code::kNotFound)) return read.error();
      set = read ? std::next(set) : out.sets.erase(set);
    }
    return {};
  }

  Result<> ReadElements(const Table& table, Ruleset::SetContents& into, bool& torn) {
    KEELSON_RETURN_IF_ERROR(
        Ask(table, NFT_MSG_GETSETELEM, NLM_F_DUMP,
            {{NFTA_SET_ELEM_LIST_TABLE, table.name}, {NFTA_SET_ELEM_LIST_SET, into.set.name}},
            [&](const nlmsghdr* header) {
              torn = torn || (header->nlmsg_flags & NLM_F_DUMP_INTR);
              DecodeElements(header, into);
            }));
    // A hash table that grows during a dump omits elements silently, so compare with the kernel's count.
    if (into.set.interval || into.set.dynamic || into.set.timeout.count() > 0) return {};
    KEELSON_ASSIGN_OR_RETURN(size_t count, CountOf(table, into.set.name));
    torn = torn || into.elements.size() < count;
    return {};
  }

  // The number of elements by the kernel's count; 0 if it does not report one (before Linux 6.16).
  Result<size_t> CountOf(const Table& table, const std::string& set) {
    constexpr uint16_t kSetCount = 20;  // NFTA_SET_COUNT, newer than the headers of Debian 12 and 13
    size_t count = 0;
    KEELSON_RETURN_IF_ERROR(Ask(table, NFT_MSG_GETSET, 0,
                                {{NFTA_SET_TABLE, table.name}, {NFTA_SET_NAME, set}},
                                [&](const nlmsghdr* header) {
                                  ForEachAttribute(header, sizeof(nfgenmsg), [&](const nlattr* attribute) {
                                    if (mnl_attr_get_type(attribute) == kSetCount) {
                                      count = ntohl(mnl_attr_get_u32(attribute));
                                    }
                                  });
                                }));
    return count;
  }

  Result<std::optional<Ruleset>> ReadOnce(const Table& table, bool& torn) {
    auto query = [&](int type, int flags, const Attributes& attributes,
                     const NetfilterSocket::Each& each) -> Result<> {
      return Ask(table, type, flags, attributes, [&](const nlmsghdr* header) {
        torn = torn || (header->nlmsg_flags & NLM_F_DUMP_INTR);
        each(header);
      });
    };
    Ruleset out{.table = table};
    KEELSON_ASSIGN_OR_RETURN(bool exists, HasTable(table));
    if (!exists) return std::optional<Ruleset>();
    KEELSON_RETURN_IF_ERROR(query(NFT_MSG_GETCHAIN, NLM_F_DUMP, {{NFTA_CHAIN_TABLE, table.name}},
                                  [&](const nlmsghdr* header) { DecodeChain(header, out); }));
    KEELSON_RETURN_IF_ERROR(query(NFT_MSG_GETRULE, NLM_F_DUMP, {{NFTA_RULE_TABLE, table.name}},
                                  [&](const nlmsghdr* header) { DecodeRule(header, out); }));
    KEELSON_RETURN_IF_ERROR(query(NFT_MSG_GETSET, NLM_F_DUMP, {{NFTA_SET_TABLE, table.name}},
                                  [&](const nlmsghdr* header) { DecodeSet(header, out); }));
    for (auto& [name, contents] : out.sets) KEELSON_RETURN_IF_ERROR(ReadElements(table, contents, torn));
    return std::optional<Ruleset>(std::move(out));
  }

  NetfilterSocket socket_;
  uint32_t seq_ = 1;
};

}  // namespace

Result<std::optional<Ruleset>> Kernel::ReadSets(const Table& table, const std::vector<std::string>& names) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<Ruleset> found, ReadSets(table));
  if (!found) return found;
  found->chains.clear();
  std::erase_if(found->sets, [&](const auto& set) {
    return std::find(names.begin(), names.end(), set.first) == names.end();
  });
  return found;
}

Result<std::vector<std::string>> Kernel::SetNames(const Table& table) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<Ruleset> found, ReadSets(table));
  return found ? NamesOf(*found) : std::vector<std::string>();
}

Result<std::unique_ptr<Kernel>> OpenKernel() {
  KEELSON_ASSIGN_OR_RETURN(NetfilterSocket socket, NetfilterSocket::Open());
  return std::unique_ptr<Kernel>(std::make_unique<RealKernel>(std::move(socket)));
}

Result<std::unique_ptr<Kernel>> OpenKernel(const linux::NetNs& netns) {
  std::unique_ptr<Kernel> kernel;
  KEELSON_RETURN_IF_ERROR(netns.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(kernel, OpenKernel());
    return {};
  }));
  return kernel;
}

}  // namespace keelson::nft
