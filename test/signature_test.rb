# frozen_string_literal: true

require "test_helper"
require "pathname"

begin
  require "rbs"
rescue LoadError
  nil # The gem rbs serves this test alone.
end

# sig/zstd_rb.rbs and the gem say the same, in both directions.
class SignatureTest < ZstdTest
  SIG = File.join(ROOT, "sig")
  # What Struct gives to every class it makes; the setters cannot work on a frozen one.
  STRUCT = %i[new [] members inspect keyword_init?].freeze

  def setup
    return if defined?(RBS)

    ENV["CI"] ? flunk("the gem rbs is not installed") : skip("the gem rbs is not installed")
  end

  # With the core signatures too: a type nobody defines is found.
  def environment
    @environment ||= begin
      loader = RBS::EnvironmentLoader.new
      loader.add(path: Pathname(SIG))
      RBS::Environment.from_loader(loader).resolve_type_names
    end
  end

  def builder
    @builder ||= RBS::DefinitionBuilder.new(env: environment)
  end

  def modules
    found = [Zstd]
    found.each do |owner|
      owner.constants(false).map { |name| owner.const_get(name) }.grep(Module).each do |inner|
        found << inner if inner.name&.start_with?("Zstd") && !found.include?(inner)
      end
    end
    found
  end

  def type_name(mod)
    names = mod.name.split("::").map(&:to_sym)
    namespace = RBS::Namespace.new(path: names[0..-2], absolute: true)
    RBS::TypeName.new(name: names.last, namespace:)
  end

  # The declared methods of a module's own, by name.
  def declared(mod, kind)
    name = type_name(mod)
    definition = kind == :singleton ? builder.build_singleton(name) : builder.build_instance(name)
    definition.methods.select { |_, method| method.defs.any? { |d| d.implemented_in == name && d.member } }
  end

  def defined(mod, kind)
    names = kind == :singleton ? mod.singleton_methods(false) : mod.public_instance_methods(false)
    return names unless mod < Struct

    kind == :singleton ? names - STRUCT : names.reject { |name| name.end_with?("=") } - STRUCT
  end

  def test_it_parses_and_every_type_in_it_exists
    modules.each do |mod|
      refute_nil environment, mod.name
      builder.build_singleton(type_name(mod))
      builder.build_instance(type_name(mod))
    end
    declared(Zstd, :singleton).each_value do |method|
      method.method_types.each { |type| type.each_type { |part| assert_known part } }
    end
  end

  def assert_known(type)
    return unless type.is_a?(RBS::Types::ClassInstance)

    assert environment.class_decls.key?(type.name), "unknown type #{type}"
  end

  def test_every_module_and_class_is_declared_with_its_parent
    modules.each do |mod|
      entry = environment.class_decls[type_name(mod)]
      refute_nil entry, "#{mod} is not declared"
      next unless mod.is_a?(Class)

      parent = builder.ancestor_builder.one_instance_ancestors(type_name(mod)).super_class.name
      assert_equal mod.superclass.name, parent.to_s.delete_prefix("::"), mod.name
    end
    declared = environment.class_decls.keys.map { |name| name.to_s.delete_prefix("::") }.grep(/\AZstd\b/)
    assert_equal modules.map(&:name).sort, declared.sort
  end

  def test_every_constant_is_declared_with_its_type
    values = Zstd.constants.reject { |name| Zstd.const_get(name).is_a?(Module) }
    names = environment.respond_to?(:constant_decls) ? environment.constant_decls : environment.constant_entries
    declared = names.select { |name, _| name.to_s.start_with?("::Zstd::") }
    assert_equal values.sort, declared.keys.map(&:name).sort
    declared.each do |name, entry|
      assert_equal Zstd.const_get(name.name).class.name, entry.decl.type.to_s.delete_prefix("::")
    end
  end

  def test_every_public_method_is_declared_and_every_declared_one_exists
    modules.product(%i[singleton instance]).each do |mod, kind|
      next if kind == :instance && !mod.is_a?(Class)

      assert_equal defined(mod, kind).sort, (declared(mod, kind).keys - inherited_new(mod) - [:initialize]).sort,
                   "#{kind} methods of #{mod}"
    end
  end

  # A declared `initialize` declares `new` too, which is Class's own.
  def inherited_new(mod)
    mod.singleton_methods(false).include?(:new) ? [] : [:new]
  end

  # Native methods do not name their parameters, so the names are left out.
  def test_parameters_fit
    each_method do |name, actual, type|
      function = type.type
      kinds = actual.parameters.group_by(&:first).transform_values { |list| list.map(&:last) }
      assert_equal function.required_positionals.size, kinds.fetch(:req, []).size, name
      assert_equal function.optional_positionals.size, kinds.fetch(:opt, []).size, name
      assert_equal function.optional_keywords.keys.sort, kinds.fetch(:key, []).sort, name
      assert_equal function.required_keywords.keys.sort, kinds.fetch(:keyreq, []).sort, name
      assert_equal [function.rest_positionals].compact.size, kinds.fetch(:rest, []).size, name
      assert_empty kinds.keys - %i[req opt key keyreq rest block], name
    end
  end

  def each_method
    modules.product(%i[singleton instance]).each do |mod, kind|
      next if kind == :instance && !mod.is_a?(Class)

      declared(mod, kind).each do |name, method|
        actual = kind == :singleton ? mod.method(name) : mod.instance_method(name)
        actual = mod.instance_method(:initialize) if kind == :singleton && inherited_new(mod).include?(name)
        method.method_types.each { |type| yield "#{mod}.#{name}", actual, type }
      end
    end
  end

  # A keyword is known when a useless value for it is refused for another reason, or taken.
  def test_every_declared_keyword_is_known_and_optional_where_declared
    packed = Zstd.compress("a")
    calls = 0
    declared(Zstd, :singleton).each do |name, method|
      type = method.method_types.first.type
      assert_empty type.required_keywords, name
      type.optional_keywords.each_key do |keyword|
        calls += 1
        Zstd.public_send(name, packed, keyword => Object.new)
      rescue StandardError => e
        refute_match(/unknown keyword/, e.message, "#{name}(#{keyword}:)")
      end
    end
    assert_operator calls, :>=, 8
  end

  # Nothing else is taken: each keyword of either side is either declared for a method or refused by it.
  def test_every_keyword_not_declared_is_refused
    known = %i[level checksum max_output_size window_log_max dict strategy workers window_log magicless buffer]
    %i[compress decompress deflate inflate].each do |name|
      taken = declared(Zstd, :singleton)[name].method_types.first.type.optional_keywords.keys
      (known - taken).each do |keyword|
        error = assert_raises(ArgumentError, "#{name}(#{keyword}:)") { Zstd.public_send(name, "", keyword => 1) }
        assert_match(/unknown keyword.*#{keyword}/, error.message)
      end
    end
  end

  def test_every_declaration_has_a_comment
    lines = File.readlines(File.join(SIG, "zstd_rb.rbs"), chomp: true)
    lines.each_with_index do |line, index|
      next unless line.match?(/\A\s*(def |attr_reader |class |module |type |[A-Z_]+:)/)

      assert_match(/\A\s*#/, lines[index - 1], "no comment above #{line.strip}")
    end
  end
end
