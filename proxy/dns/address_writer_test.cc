#include "proxy/dns/address_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/dataplane/domain_sets.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/nft/testing/fake.h"
#include "proxy/dns/testing/answer_delivery.h"
#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// One kernel that several threads use.
class SharedKernel : public nft::Kernel {
 public:
  struct State {
    Mutex mutex;
    nft::FakeKernel kernel KEELSON_GUARDED_BY(mutex);
    int applied KEELSON_GUARDED_BY(mutex) = 0;
    uint32_t expired KEELSON_GUARDED_BY(mutex) = 0;  // changes that no generation counts
  };
  explicit SharedKernel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Result<> Apply(const nft::Transaction& transaction) override {
    MutexLock lock(state_->mutex);
    ++state_->applied;
    return state_->kernel.Apply(transaction);
  }
  using Kernel::ReadSets;
  Result<std::optional<nft::Ruleset>> Read(const nft::Table& table) override {
    MutexLock lock(state_->mutex);
    return state_->kernel.Read(table);
  }
  Result<bool> HasChain(const nft::Table& table, const std::string& chain) override {
    MutexLock lock(state_->mutex);
    return state_->kernel.HasChain(table, chain);
  }
  Result<uint32_t> Generation() override {
    MutexLock lock(state_->mutex);
    return *state_->kernel.Generation() - state_->expired;
  }

 private:
  const std::shared_ptr<State> state_;
};

class AddressWriterTest : public ::testing::Test {
 protected:
  AddressWriterTest() {
    nft::Transaction t(dataplane::PolicyTable());
    t.AddTable();
    EXPECT_TRUE(kernel_.Apply(t));
    Restart();
  }
  void Restart() {
    running_.reset();
    running_ = std::make_unique<RunningWriter>(std::make_unique<AddressWriter>(
        std::make_unique<SharedKernel>(state_), std::make_unique<SharedKernel>(state_), clock_));
  }
  // As kube-cni does for a policy.
  void AddPolicy(const char* pattern, bool v4 = true) {
    nft::Transaction t(dataplane::PolicyTable());
    t.AddSet(dataplane::DomainAddresses(pattern, v4));
    EXPECT_TRUE(kernel_.Apply(t));
    clock_.Advance(PolicyNames::kFresh);
  }
  void RemovePolicy(const char* pattern) {
    nft::Transaction t(dataplane::PolicyTable());
    t.DeleteSet(dataplane::DomainAddresses(pattern, true).name);
    EXPECT_TRUE(kernel_.Apply(t));
  }
  static std::string Answer(const char* name, uint32_t ttl, const std::vector<const char*>& addresses) {
    std::vector<TestRecord> records;
    const bool v4 = IpAddress::Parse(addresses.front())->is_v4();
    for (const char* address : addresses) {
      records.push_back(
          {name, v4 ? kTypeA : kTypeAaaa, ttl, std::string(IpAddress::Parse(address)->bytes())});
    }
    return AnswerPacket(QueryPacket(name, v4 ? kTypeA : kTypeAaaa), Rcode::kNoError, records);
  }
  // Addresses and lifetimes in seconds.
  std::map<std::string, int64_t> In(const char* pattern, bool v4 = true) {
    std::map<std::string, int64_t> out;
    std::optional<nft::Ruleset> found = *kernel_.Read(dataplane::PolicyTable());
    for (const auto& [key, element] : found->sets.at(dataplane::DomainAddresses(pattern, v4).name).elements) {
      out[IpAddress::FromBytes(key).ToString()] =
          std::chrono::duration_cast<seconds>(element.lifetime).count();
    }
    return out;
  }
  // As the kernel does when an element's time has come.
  void Expire(const char* pattern, const char* address) {
    nft::Transaction t(dataplane::PolicyTable());
    t.DeleteElements(dataplane::DomainAddresses(pattern, true),
                     {{.key = nft::Key().Ip(*IpAddress::Parse(address)).bytes()}});
    MutexLock lock(state_->mutex);
    EXPECT_TRUE(state_->kernel.Apply(t));
    ++state_->expired;
  }
  int Applied() {
    MutexLock lock(state_->mutex);
    return state_->applied;
  }
  bool Holds(const char* name, bool v4 = true) { return running_->writer().Holds(*ParseName(name), v4); }

  FakeClock clock_;
  std::shared_ptr<SharedKernel::State> state_ = std::make_shared<SharedKernel::State>();
  SharedKernel kernel_{state_};
  std::unique_ptr<RunningWriter> running_;
};

TEST_F(AddressWriterTest, AnAnswerWaitsUntilItsAddressesAreLetThrough) {
  AddPolicy("*.example.com");
  AddPolicy("www.example.com");
  AddPolicy("*.example.com", false);
  AddPolicy("other.example.com");
  std::map<std::string, int64_t> below, exact;
  running_->Deliver(Answer("www.example.com", 60, {"192.0.2.1", "192.0.2.2"}), [&] {
    below = In("*.example.com");
    exact = In("www.example.com");
  });
  EXPECT_THAT(below, ElementsAre(Pair("192.0.2.1", 90), Pair("192.0.2.2", 90))) << "when the answer was sent";
  EXPECT_EQ(below, exact);
  EXPECT_THAT(In("other.example.com"), IsEmpty());
  running_->Deliver(Answer("www.example.com", 0, {"2001:db8::1"}));
  EXPECT_THAT(In("*.example.com", false), ElementsAre(Pair("2001:db8::1", 30)));
  running_->Deliver(Answer("www.example.org", 60, {"192.0.2.3"}));
  EXPECT_THAT(In("*.example.com"), ElementsAre(Pair("192.0.2.1", 90), Pair("192.0.2.2", 90)));
}

TEST_F(AddressWriterTest, OnlyNamesOfPoliciesAreHeld) {
  EXPECT_FALSE(Holds("www.example.com"));
  AddPolicy("*.example.com");
  EXPECT_TRUE(Holds("www.example.com"));
  EXPECT_FALSE(Holds("example.com"));
  EXPECT_FALSE(Holds("www.example.com", false)) << "no pod of this node has the other family";
  RemovePolicy("*.example.com");
  clock_.Advance(PolicyNames::kFresh);
  EXPECT_FALSE(Holds("www.example.com"));
}

TEST_F(AddressWriterTest, ElementsAreRenewedBeforeTheyExpireAndNotWithEachAnswer) {
  AddPolicy("www.example.com");
  const std::string answer = Answer("www.example.com", 5, {"192.0.2.1"});
  running_->Deliver(answer);
  const int before = Applied();
  clock_.Advance(seconds(15));
  running_->Deliver(answer);
  EXPECT_EQ(Applied(), before) << "it lasts for the TTL and ten seconds more";
  clock_.Advance(seconds(10));
  running_->Deliver(answer);
  EXPECT_EQ(Applied(), before + 1);
  EXPECT_THAT(In("www.example.com"), ElementsAre(Pair("192.0.2.1", 35)));
  // After a restart the kernel says what is there.
  Restart();
  running_->Deliver(Answer("www.example.com", 600, {"192.0.2.1"}));
  EXPECT_THAT(In("www.example.com"), ElementsAre(Pair("192.0.2.1", 630)));
}

TEST_F(AddressWriterTest, ASetThatWasMadeAgainIsFilledAgain) {
  AddPolicy("www.example.com");
  const std::string answer = Answer("www.example.com", 60, {"192.0.2.1"});
  running_->Deliver(answer);
  RemovePolicy("www.example.com");
  AddPolicy("www.example.com");
  EXPECT_THAT(In("www.example.com"), IsEmpty());
  running_->Deliver(answer);
  EXPECT_THAT(In("www.example.com"), ElementsAre(Pair("192.0.2.1", 90)));
}

TEST_F(AddressWriterTest, AnElementThatExpiresJustNowIsAddedAgain) {
  AddPolicy("www.example.com");
  const std::string answer = Answer("www.example.com", 60, {"192.0.2.1"});
  running_->Deliver(answer);
  clock_.Advance(seconds(90));  // by our clock it may still be there
  Expire("www.example.com", "192.0.2.1");
  running_->Deliver(answer);
  EXPECT_THAT(In("www.example.com"), ElementsAre(Pair("192.0.2.1", 90)));
}

TEST_F(AddressWriterTest, WithoutASetTheAnswerIsSentAllTheSame) {
  AddPolicy("www.example.com");
  EXPECT_TRUE(Holds("www.example.com"));
  RemovePolicy("www.example.com");
  running_->Deliver(Answer("www.example.com", 60, {"192.0.2.1"}));
  nft::Transaction t(dataplane::PolicyTable());
  t.DeleteTable();
  EXPECT_TRUE(kernel_.Apply(t));
  running_->Deliver(Answer("www.example.com", 60, {"192.0.2.1"}));
  running_->Deliver("no answer");
  running_->Stop();
  running_->Deliver(Answer("www.example.com", 60, {"192.0.2.1"}));
}

TEST_F(AddressWriterTest, ASetHasALimit) {
  AddPolicy("*.example.com");
  constexpr size_t kOfAnswer = 1024;
  IpAddress next = *IpAddress::Parse("10.0.0.0");
  for (size_t sent = 0; sent < AddressWriter::kMostOfSet + kOfAnswer; sent += kOfAnswer) {
    std::vector<TestRecord> records;
    for (size_t i = 0; i < kOfAnswer; ++i) {
      records.push_back({"a.example.com", kTypeA, 60, std::string(next.Plus(sent + i).bytes())});
    }
    running_->Deliver(AnswerPacket(QueryPacket("a.example.com", kTypeA), Rcode::kNoError, records));
  }
  EXPECT_EQ(In("*.example.com").size(), AddressWriter::kMostOfSet);
}

}  // namespace
}  // namespace keelson::proxy::dns
